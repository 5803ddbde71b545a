package flinkcompat.planner;

import java.io.*;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.*;
import java.util.concurrent.*;
import org.apache.flink.runtime.util.EnvironmentInformation;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

/**
 * Answers requests, a line of JSON each: what this Flink plans for a script. Nothing runs and no cluster is asked.
 *
 * <p>The process ends with its standard input, and after {@code -Dflinkcompat.idle} seconds without a request.
 */
public final class Main {
    static final ObjectMapper JSON = new ObjectMapper();
    private static final int LONGEST_CHAIN = 12;

    /** Whether a jar left work behind, with which the next script would have to share this process. */
    private static boolean spent;

    private Main() {}

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // what libraries print must not stand between answers
        BlockingQueue<String> requests = new LinkedBlockingQueue<>();
        Thread reader = new Thread(() -> read(requests), "requests");
        reader.setDaemon(true);
        reader.start();
        long idle = Long.getLong("flinkcompat.idle", 600);
        for (String line; (line = requests.poll(idle, TimeUnit.SECONDS)) != null; ) {
            answers.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
            if (spent) break;
        }
        Runtime.getRuntime().halt(0);
    }

    /** Ends the process with its input, even while a script is being planned: nothing outlives the client. */
    private static void read(BlockingQueue<String> requests) {
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line; (line = in.readLine()) != null; ) requests.add(line);
        } catch (IOException e) {
            // The client is gone.
        }
        Runtime.getRuntime().halt(0);
    }

    private static Map<String, Object> answer(JsonNode request) {
        Map<String, Object> answer = new LinkedHashMap<>();
        long begin = System.nanoTime();
        answer.put("id", request.path("id").asLong());
        answer.put("flink", EnvironmentInformation.getVersion());
        ClassLoader own = Main.class.getClassLoader();
        try (URLClassLoader loader = new URLClassLoader(jars(request), own)) {
            Thread.currentThread().setContextClassLoader(loader);
            new ScriptPlanner(request, loader).plan(answer);
        } catch (Throwable e) {
            answer.put("failure", chain(e));
        } finally {
            Thread.currentThread().setContextClassLoader(own);
            spent = request.path("jars").size() > 0 && leavesWork();
        }
        answer.put("milliseconds", (System.nanoTime() - begin) / 1_000_000);
        return answer;
    }

    private static boolean leavesWork() {
        return ProcessHandle.current().children().findAny().isPresent() || Thread.getAllStackTraces().keySet().stream()
            .anyMatch(each -> each.getContextClassLoader() instanceof URLClassLoader
                && each.getState() == Thread.State.RUNNABLE);
    }

    private static URL[] jars(JsonNode request) throws IOException {
        List<URL> jars = new ArrayList<>();
        for (JsonNode jar : request.path("jars")) jars.add(Path.of(jar.asText()).toUri().toURL());
        return jars.toArray(URL[]::new);
    }

    /** An exception and its causes, a class and a message each. */
    static List<Map<String, String>> chain(Throwable error) {
        List<Map<String, String>> all = new ArrayList<>();
        for (Throwable e = error; e != null && all.size() < LONGEST_CHAIN; e = e.getCause()) {
            all.add(Map.of("class", e.getClass().getName(), "message", String.valueOf(e.getMessage())));
        }
        return all;
    }
}
