import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.ZipFile;
import org.apache.flink.client.program.ClusterClient;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.client.JobStatusMessage;
import org.apache.flink.runtime.testutils.MiniClusterResourceConfiguration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.StatementSet;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.planner.factories.TestValuesTableFactory;
import org.apache.flink.table.planner.plan.nodes.exec.ExecNodeMetadata;
import org.apache.flink.table.planner.plan.nodes.exec.testutils.RestoreTestBase;
import org.apache.flink.table.test.program.SinkTestStep;
import org.apache.flink.table.test.program.SourceTestStep;
import org.apache.flink.table.test.program.SqlTestStep;
import org.apache.flink.table.test.program.StatementSetTestStep;
import org.apache.flink.table.test.program.TableTestProgram;
import org.apache.flink.table.test.program.TableTestStep;
import org.apache.flink.table.test.program.TestStep;
import org.apache.flink.test.util.MiniClusterWithClientResource;
import org.apache.flink.types.Row;

/**
 * Runs the programs of Flink's restore tests: {@code JAR save FOLDER} plans their SQL and takes savepoints, {@code JAR
 * restore FOLDER} plans the same SQL and restores these, {@code JAR plans FOLDER} runs Flink's own tests over the compiled
 * plans and savepoints in a folder.
 *
 * <p>Prints a line for each run: node, program, result and message, separated by tabs.
 */
public class RestoreTests {
    private static final int SECONDS = 40;
    private static final ExecutorService POOL = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        return thread;
    });
    private static PrintStream out;
    private static ClusterClient<?> client;

    private static final class NotRun extends Exception {
        NotRun(String reason) {
            super(reason);
        }
    }

    private interface Run {
        void run() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        out = System.out;
        System.setOut(System.err);
        var cluster = new MiniClusterWithClientResource(new MiniClusterResourceConfiguration.Builder().build());
        cluster.before();
        client = cluster.getClusterClient();
        Path folder = Paths.get(arguments[2]).toAbsolutePath();
        for (RestoreTestBase test : tests(Paths.get(arguments[0]))) {
            List<ExecNodeMetadata> versions = versions(test);
            for (TableTestProgram program : test.supportedPrograms()) {
                if (arguments[1].equals("plans")) {
                    for (ExecNodeMetadata version : versions) {
                        plans(test, program, version, folder);
                    }
                    continue;
                }
                ExecNodeMetadata newest = versions.get(versions.size() - 1);
                Path own = folder.resolve(newest.name()).resolve(program.id);
                boolean save = arguments[1].equals("save");
                if (save || Files.exists(own.resolve("savepoint"))) {
                    report(name(newest), program.id, () -> {
                        if (save) {
                            save(program, own);
                        } else {
                            restore(test, program, own);
                        }
                    });
                }
            }
        }
        System.exit(0);
    }

    private static String name(ExecNodeMetadata node) {
        return node.name() + "_" + node.version();
    }

    private static List<RestoreTestBase> tests(Path jar) throws Exception {
        List<RestoreTestBase> found = new ArrayList<>();
        try (ZipFile file = new ZipFile(jar.toFile())) {
            for (String name : file.stream().map(Object::toString).sorted().collect(Collectors.toList())) {
                if (name.matches("org/apache/flink/table/planner/.*Test\\.class")) {
                    Class<?> type = Class.forName(name.replace('/', '.').replaceAll("\\.class$", ""), false,
                            RestoreTests.class.getClassLoader());
                    if (RestoreTestBase.class.isAssignableFrom(type) && !Modifier.isAbstract(type.getModifiers())) {
                        var constructor = type.getDeclaredConstructor();
                        constructor.setAccessible(true);
                        found.add((RestoreTestBase) constructor.newInstance());
                    }
                }
            }
        }
        return found;
    }

    @SuppressWarnings("unchecked")
    private static List<ExecNodeMetadata> versions(RestoreTestBase test) throws Exception {
        Method method = RestoreTestBase.class.getDeclaredMethod("getAllMetadata");
        method.setAccessible(true);
        List<ExecNodeMetadata> found = new ArrayList<>((List<ExecNodeMetadata>) method.invoke(test));
        found.sort((a, b) -> a.version() - b.version());
        return found;
    }

    private static void plans(RestoreTestBase test, TableTestProgram program, ExecNodeMetadata node, Path folder)
            throws Exception {
        Path own = folder.resolve(name(node)).resolve(program.id);
        Path plan = own.resolve("plan").resolve(program.id + ".json");
        if (!Files.exists(plan)) {
            return;
        }
        List<Path> savepoints;
        try (Stream<Path> files = Files.walk(own)) {
            savepoints = files.filter(each -> each.endsWith("_metadata")).sorted().collect(Collectors.toList());
        }
        Method run = RestoreTestBase.class
                .getDeclaredMethod("testRestore", TableTestProgram.class, Path.class, String.class);
        run.setAccessible(true);
        for (Path savepoint : savepoints) {
            String line = own.relativize(savepoint).toString().replaceAll("/?savepoint/_metadata", "");
            report(name(node), program.id + (line.isEmpty() ? "" : "/" + line),
                    () -> run.invoke(test, program, plan, savepoint.getParent().toString()));
        }
    }

    private static void report(String node, String program, Run run) throws Exception {
        String result;
        String message = "";
        Future<?> future = POOL.submit((Callable<Void>) () -> {
            run.run();
            return null;
        });
        try {
            future.get(SECONDS, TimeUnit.SECONDS);
            result = "right";
        } catch (TimeoutException error) {
            future.cancel(true);
            result = "late";
        } catch (ExecutionException error) {
            Throwable cause = error.getCause();
            while (cause instanceof InvocationTargetException) {
                cause = cause.getCause();
            }
            result = cause instanceof NotRun ? "not run" : cause instanceof AssertionError ? "wrong" : "failed";
            message = messages(cause);
        }
        for (JobStatusMessage job : client.listJobs().get()) {
            if (!job.getJobState().isGloballyTerminalState()) {
                client.cancel(job.getJobId());
            }
        }
        while (client.listJobs().get().stream().anyMatch(job -> !job.getJobState().isGloballyTerminalState())) {
            Thread.sleep(20);
        }
        TestValuesTableFactory.clearAllData();
        out.println(String.join("\t", node, program, result, message));
        out.flush();
    }

    private static String messages(Throwable error) {
        StringBuilder text = new StringBuilder();
        for (Throwable each = error; each != null; each = each.getCause()) {
            text.append(text.length() == 0 ? "" : " <- ").append(each.getClass().getSimpleName()).append(": ");
            text.append(String.valueOf(each.getMessage()).split("\\n\\tat ")[0]);
        }
        String flat = text.toString().replaceAll("\\s+", " ");
        return flat.length() > 3000 ? flat.substring(0, 1000) + " … " + flat.substring(flat.length() - 2000) : flat;
    }

    private static void save(TableTestProgram program, Path own) throws Exception {
        TableEnvironment tables = environment(null);
        List<SinkTestStep> sinks = program.getSetupSinkTestSteps();
        String script = declare(program, tables, true, true);
        Files.createDirectories(own);
        Files.writeString(own.resolve("script.sql"), script);
        TableResult job = start(program, tables);
        for (SinkTestStep sink : sinks) {
            await(sink, sink.getExpectedBeforeRestoreAsStrings());
        }
        JobClient running = job.getJobClient().get();
        String savepoint =
                running.stopWithSavepoint(false, own.toString(), SavepointFormatType.CANONICAL).get();
        Files.move(Paths.get(new URI(savepoint)), own.resolve("savepoint"));
    }

    private static void restore(RestoreTestBase test, TableTestProgram program, Path own) throws Exception {
        Field field = RestoreTestBase.class.getDeclaredField("afterRestoreSource");
        field.setAccessible(true);
        String after = String.valueOf(field.get(test));
        if (after.equals("NO_RESTORE")) {
            throw new NotRun("the test restores nothing");
        }
        TableEnvironment tables = environment(own.resolve("savepoint").toString());
        boolean infinite = after.equals("INFINITE");
        String script = declare(program, tables, false, infinite);
        if (!script.equals(Files.readString(own.resolve("script.sql")))) {
            throw new NotRun("the newer line has another program of this name");
        }
        TableResult job;
        try {
            job = start(program, tables);
        } catch (Exception error) {
            throw new RuntimeException("not planned", error);
        }
        if (!infinite) {
            job.await();
        }
        for (SinkTestStep sink : program.getSetupSinkTestSteps()) {
            List<String> expected = new ArrayList<>(sink.getExpectedBeforeRestoreAsStrings());
            expected.addAll(sink.getExpectedAfterRestoreAsStrings());
            if (infinite) {
                await(sink, expected);
            } else if (!same(expected, actual(sink))) {
                throw new AssertionError(actual(sink) + " and not " + expected);
            }
        }
    }

    private static TableEnvironment environment(String savepoint) {
        EnvironmentSettings settings = EnvironmentSettings.inStreamingMode();
        settings.getConfiguration().setString("state.backend.type", "rocksdb");
        if (savepoint != null) {
            settings.getConfiguration().setString("execution.savepoint.path", savepoint);
            settings.getConfiguration().setString("execution.state-recovery.path", savepoint);
        }
        return TableEnvironment.create(settings);
    }

    private static String declare(TableTestProgram program, TableEnvironment tables, boolean before, boolean lasting)
            throws Exception {
        StringBuilder script = new StringBuilder();
        for (var each : program.getSetupConfigOptionTestSteps()) {
            each.apply(tables);
            String value = tables.getConfig().getConfiguration().toMap().get(each.option.key());
            script.append("SET '").append(each.option.key()).append("' = '").append(value).append("';\n");
        }
        for (SourceTestStep each : program.getSetupSourceTestSteps()) {
            if (flag(each, "treatDataBeforeRestoreAsConsumedData")) {
                throw new NotRun("the source of the test counts its rows");
            }
            Map<String, String> options = new HashMap<>();
            options.put("connector", "values");
            options.put("data-id",
                    TestValuesTableFactory.registerData(before ? each.dataBeforeRestore : each.dataAfterRestore));
            options.put("runtime-source", "NewSource");
            if (lasting) {
                options.put("terminating", "false");
            }
            each.apply(tables, options);
            script.append(ddl(each, "source"));
        }
        for (TestStep each : program.setupSteps) {
            if (each.getClass().getSimpleName().equals("ModelTestStep")) {
                throw new NotRun("the test uses a model");
            }
        }
        for (SinkTestStep each : program.getSetupSinkTestSteps()) {
            each.apply(tables, Map.of("connector", "values", "disable-lookup", "true", "sink-insert-only", "false"));
            script.append(ddl(each, "sink"));
        }
        program.getSetupFunctionTestSteps().forEach(each -> each.apply(tables));
        program.getSetupTemporalFunctionTestSteps().forEach(each -> each.apply(tables));
        for (TestStep each : program.setupSteps) {
            if (each instanceof SqlTestStep) {
                tables.executeSql(((SqlTestStep) each).sql);
                script.append(((SqlTestStep) each).sql).append(";\n");
            }
        }
        List<String> statements = statements(program);
        script.append(statements.size() == 1 ? "" : "BEGIN STATEMENT SET;\n");
        statements.forEach(each -> script.append(each).append(";\n"));
        return script.append(statements.size() == 1 ? "" : "END;\n").toString();
    }

    private static boolean flag(Object step, String name) throws Exception {
        try {
            return step.getClass().getField(name).getBoolean(step);
        } catch (NoSuchFieldException error) {
            return false;
        }
    }

    private static String ddl(TableTestStep table, String use) {
        StringBuilder text = new StringBuilder("CREATE TABLE ").append(table.name).append(" (\n  ");
        text.append(String.join(",\n  ", table.schemaComponents)).append("\n)");
        if (!table.partitionKeys.isEmpty()) {
            text.append(" PARTITIONED BY (").append(String.join(", ", table.partitionKeys)).append(")");
        }
        Map<String, String> options = new TreeMap<>(table.options);
        options.put("use", use);
        text.append(" WITH (");
        text.append(options.entrySet().stream()
                .map(each -> "'" + each.getKey() + "' = '" + each.getValue().replace("'", "''") + "'")
                .collect(Collectors.joining(", ")));
        return text.append(");\n").toString();
    }

    private static List<String> statements(TableTestProgram program) throws NotRun {
        TestStep step = program.runSteps.get(0);
        if (step instanceof SqlTestStep) {
            return List.of(((SqlTestStep) step).sql);
        }
        if (step instanceof StatementSetTestStep) {
            return ((StatementSetTestStep) step).statements;
        }
        throw new NotRun("the test has no SQL");
    }

    private static TableResult start(TableTestProgram program, TableEnvironment tables) throws NotRun {
        List<String> statements = statements(program);
        if (statements.size() == 1) {
            return tables.executeSql(statements.get(0));
        }
        StatementSet set = tables.createStatementSet();
        statements.forEach(set::addInsertSql);
        return set.execute();
    }

    private static void await(SinkTestStep sink, List<String> expected) throws Exception {
        while (!same(expected, actual(sink))) {
            Thread.sleep(30);
        }
    }

    private static List<String> actual(SinkTestStep sink) {
        return sink.testChangelogData
                ? TestValuesTableFactory.getRawResultsAsStrings(sink.name)
                : TestValuesTableFactory.getResultsAsStrings(sink.name);
    }

    private static boolean same(Collection<String> expected, Collection<String> actual) {
        return expected.stream().sorted().collect(Collectors.toList())
                .equals(actual.stream().sorted().collect(Collectors.toList()));
    }
}
