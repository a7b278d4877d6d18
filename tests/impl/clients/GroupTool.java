import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;

/** Runs kafka-consumer-groups for each line of arguments: what it prints, and a mark. */
public class GroupTool {
    public static void main(String[] none) throws Exception {
        org.apache.kafka.common.utils.Exit.setExitProcedure((status, message) -> { throw new RuntimeException("exit " + status); });
        PrintStream answers = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        var tool = Class.forName("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand").getMethod("main", String[].class);
        for (String line; (line = lines.readLine()) != null; ) {
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            System.setOut(new PrintStream(printed, true));
            tool.invoke(null, (Object) line.split("\t"));
            answers.print(printed + "\u0001");
            answers.flush();
        }
    }
}
