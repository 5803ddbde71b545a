package flinkcompat.planner;

import java.io.*;
import java.net.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import org.apache.commons.lang3.exception.ExceptionUtils;
import org.apache.flink.runtime.util.EnvironmentInformation;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.*;
import org.apache.flink.util.*;

/**
 * Answers requests, one line of JSON each: the jobs that this Flink plans for a script. No job runs.
 *
 * <p>The process ends with its standard input, and after {@code -Dflinkcompat.idle} seconds without a request.
 */
public final class Main {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // what libraries print must not stand between answers
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        BlockingQueue<String> requests = new LinkedBlockingQueue<>();
        new Thread(() -> {
            try {
                in.lines().forEach(requests::add);
            } finally { // even while a script is being planned: nothing outlives the client
                Runtime.getRuntime().halt(0);
            }
        }).start();
        long idle = Long.getLong("flinkcompat.idle", 600);
        for (String line; (line = requests.poll(idle, TimeUnit.SECONDS)) != null; ) {
            JsonNode request = JSON.readTree(line);
            answers.println(JSON.writeValueAsString(answer(request)));
            if (request.path("jars").size() > 0 && leavesWork()) break; // the next script would share this process
        }
        Runtime.getRuntime().halt(0);
    }

    private static Map<String, Object> answer(JsonNode request) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("id", request.path("id").asLong());
        answer.put("flink", EnvironmentInformation.getVersion());
        String[] jars = JSON.convertValue(request.path("jars"), String[].class);
        try (URLClassLoader loader = new URLClassLoader(JarUtils.getJarFiles(jars).toArray(URL[]::new), loader());
                TemporaryClassLoaderContext context = TemporaryClassLoaderContext.of(loader)) {
            new ScriptPlanner(request).plan(answer);
        } catch (Throwable e) {
            answer.put("refusal", chain(e));
        }
        return answer;
    }

    /** Whether a jar left a process or a running thread behind. */
    private static boolean leavesWork() {
        return ProcessHandle.current().children().findAny().isPresent() || Thread.getAllStackTraces().keySet().stream()
            .anyMatch(each -> each.getContextClassLoader() instanceof URLClassLoader
                && each.getState() == Thread.State.RUNNABLE);
    }

    static ClassLoader loader() { return Thread.currentThread().getContextClassLoader(); }

    /** An exception and its causes, a class and a message each. */
    static List<Map<String, String>> chain(Throwable error) {
        return ExceptionUtils.getThrowableList(error).stream().limit(12)
            .map(e -> Map.of("class", e.getClass().getName(), "message", String.valueOf(e.getMessage()))).toList();
    }
}
