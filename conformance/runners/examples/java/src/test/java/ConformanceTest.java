import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Each case as a test of its own, in a project in Java: mvn test -Dcases=frames/ (RUNNER is the program kspec-runner). */
class ConformanceTest {

    record Done(int status, String output, String errors) {
        String verdict() {
            return output.split("\t")[0];
        }
    }

    /** What starts your broker stands here; in this example it was started before, and BROKER is its address. */
    static String startBroker() {
        assumeTrue(System.getenv("BROKER") != null, "BROKER=HOST:PORT is the broker under test");
        return System.getenv("BROKER");
    }

    static Done run(String... arguments) throws IOException, InterruptedException {
        var command = new java.util.ArrayList<String>();
        command.add(System.getenv().getOrDefault("RUNNER", "kspec-runner"));
        command.addAll(java.util.List.of(arguments));
        Path errors = Files.createTempFile("kspec-runner", ".txt");
        Process process = new ProcessBuilder(command).redirectError(errors.toFile()).start();
        String output = new String(process.getInputStream().readAllBytes());
        Done done = new Done(process.waitFor(), output, Files.readString(errors));
        Files.delete(errors);
        return done;
    }

    /** Names with their reasons. */
    static Map<String, String> knownFailures() throws IOException {
        Map<String, String> known = new HashMap<>();
        for (String line : Files.readAllLines(Path.of("../known-failures.txt"))) {
            String[] parts = line.split(" ", 2);
            if (parts.length == 2 && !line.startsWith("#")) known.put(parts[0], parts[1]);
        }
        return known;
    }

    @TestFactory
    Stream<DynamicTest> conformance() throws IOException, InterruptedException {
        String address = startBroker();
        Map<String, String> known = knownFailures();
        Done listed = run("--list", "--case", System.getProperty("cases", ""));
        return listed.output().lines().map(name -> DynamicTest.dynamicTest(name, () -> {
            Done done = run("--bootstrap-server", address, "--case", name, "--timeout", "5s");
            if (known.containsKey(name)) {
                assertNotEquals("pass", done.verdict(), "it passes, and known-failures.txt says that it fails");
                assumeTrue(done.status() != 1, "known: " + known.get(name));
            }
            assumeTrue(!done.verdict().startsWith("not "), done.output());
            assertEquals(0, done.status(), done.errors());
        }));
    }
}
