import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;

/** Runs a tool of Kafka, named by its class, for each line of arguments: what it prints, and a mark. */
public class KafkaTool {
    public static void main(String[] named) throws Exception {
        org.apache.kafka.common.utils.Exit.setExitProcedure((status, message) -> { throw new RuntimeException("exit " + status); });
        PrintStream answers = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        var tool = Class.forName(named[0]).getMethod("main", String[].class);
        for (String line; (line = lines.readLine()) != null; ) {
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            System.setOut(new PrintStream(printed, true));
            try {
                tool.invoke(null, (Object) line.split("\t"));
            } catch (java.lang.reflect.InvocationTargetException ended) {
                if (!"exit 0".equals(ended.getCause().getMessage())) throw ended;
            }
            answers.print(printed + "\u0001");
            answers.flush();
        }
    }
}
