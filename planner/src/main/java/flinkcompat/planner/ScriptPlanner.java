package flinkcompat.planner;

import java.util.*;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.graph.StreamGraph;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.internal.TableEnvironmentImpl;
import org.apache.flink.table.catalog.*;
import org.apache.flink.table.delegation.Executor;
import org.apache.flink.table.operations.*;
import org.apache.flink.table.operations.command.ResetOperation;
import org.apache.flink.table.operations.command.SetOperation;
import org.apache.flink.table.operations.ddl.CreateCatalogOperation;

/** One script in a session of its own: its statements in order, and every job that they would submit. */
final class ScriptPlanner {
    /** What changes nothing but the session, whose catalogs are all in memory. */
    private static final Set<String> DECLARES = Set.of(
        "CreateTableOperation", "CreateViewOperation", "CreateCatalogFunctionOperation",
        "CreateTempSystemFunctionOperation", "CreateDatabaseOperation", "CreateModelOperation",
        "UseCatalogOperation", "UseDatabaseOperation", "UseModulesOperation",
        "LoadModuleOperation", "UnloadModuleOperation", "NopOperation");

    /** What is carried out on the session's declarations, and in a lasting catalog would change what lasts. */
    private static final Set<String> REDECLARES = Set.of(
        "DropTableOperation", "DropViewOperation", "DropCatalogFunctionOperation", "DropTempSystemFunctionOperation",
        "DropDatabaseOperation", "DropCatalogOperation", "DropModelOperation", "AlterTableChangeOperation",
        "AlterTableOptionsOperation", "AlterTableSchemaOperation", "AlterTableRenameOperation",
        "AlterViewAsOperation", "AlterViewRenameOperation", "AlterViewPropertiesOperation",
        "AlterCatalogFunctionOperation");

    private final JsonNode request;
    private final Map<String, Object> answer;
    private final Configuration initial = new Configuration();
    private final TableEnvironmentImpl session;
    private final StandIns standIns;
    private final ClassLoader loader;
    private final List<Object> jobs = new ArrayList<>();
    private final List<Object> lasting = new ArrayList<>();
    private final Map<String, String> catalogs = new TreeMap<>();

    ScriptPlanner(JsonNode request, Map<String, Object> answer, ClassLoader loader) {
        this.request = request;
        this.answer = answer;
        this.loader = loader;
        initial.setString("parallelism.default", "1"); // else the cores of this machine, on which chains depend
        request.path("settings").fields().forEachRemaining(each -> {
            initial.setString(each.getKey(), each.getValue().asText());
        });
        session = (TableEnvironmentImpl) TableEnvironment.create(EnvironmentSettings.newInstance()
            .inStreamingMode().withConfiguration(initial).withClassLoader(loader).build());
        standIns = new StandIns(request.path("changelog").asText("guess"), request.path("push_down").asBoolean(false));
        session.loadModule("flinkcompat", standIns);
    }

    void plan() {
        answer.put("jobs", jobs);
        int number = 0;
        try {
            for (JsonNode statement : request.path("statements")) {
                String sql = statement.asText();
                for (Operation operation : session.getParser().parse(sql)) carryOut(operation, sql, number);
                number++;
            }
        } catch (Throwable e) {
            answer.put("refusal", Map.of("statement", number, "chain", Main.chain(e)));
        }
        answer.put("stand_ins", standIns.used);
        answer.put("lookups", standIns.lookedUp);
        answer.put("catalogs", catalogs);
        answer.put("lasting", lasting);
    }

    private void carryOut(Operation operation, String sql, int number) throws Exception {
        String kind = operation.getClass().getSimpleName();
        if (operation instanceof SetOperation set) {
            String key = set.getKey().orElse("");
            if (!key.isEmpty()) session.getConfig().set(key, set.getValue().orElse(""));
        } else if (operation instanceof ResetOperation reset) {
            reset(reset.getKey().map(Set::of).orElseGet(() -> session.getConfig().getConfiguration().keySet()));
        } else if (operation instanceof StatementSetOperation set) {
            job(set.getOperations(), number);
        } else if (operation instanceof SinkModifyOperation insert) {
            job(List.of(insert), number);
        } else if (operation instanceof QueryOperation query) {
            job(List.of(inFrontOfASink(query, sql)), number);
        } else if (operation instanceof CreateCatalogOperation catalog) {
            create(catalog);
        } else if (!(operation instanceof ExplainOperation)) {
            if (DECLARES.contains(kind) || REDECLARES.contains(kind)) session.executeInternal(operation);
            if (!DECLARES.contains(kind)) lasting.add(Map.of("statement", number, "kind", kind));
        }
    }

    private void reset(Set<String> keys) {
        Configuration now = session.getConfig().getConfiguration();
        for (String key : Set.copyOf(keys)) {
            now.removeKey(key);
            if (initial.containsKey(key)) now.setString(key, initial.getString(key, ""));
        }
    }

    /** A catalog in memory stands for any other one: creating those connects. */
    private void create(CreateCatalogOperation catalog) {
        String type = String.valueOf(catalog.getProperties().get("type"));
        if (type.equals("generic_in_memory")) {
            session.executeInternal(catalog);
            return;
        }
        catalogs.put(catalog.getCatalogName(), type);
        String first = catalog.getProperties().getOrDefault("default-database", "default");
        session.registerCatalog(catalog.getCatalogName(), new GenericInMemoryCatalog(catalog.getCatalogName(), first) {
            @Override public boolean databaseExists(String name) { return true; } // which ones it holds is not known
        });
    }

    private void job(List<ModifyOperation> operations, int number) throws Exception {
        Map<String, Object> job = new LinkedHashMap<>();
        job.put("statement", number);
        try {
            job.put("plan", Main.JSON.readTree(session.compilePlan(operations).asJsonString()));
        } catch (Throwable e) {
            job.put("plan_failure", Main.chain(e));
        }
        Executor executor = (Executor) Reflected.field(session, "execEnv");
        StreamGraph graph = (StreamGraph) executor.createPipeline(
            session.getPlanner().translate(operations), session.getConfig().getConfiguration(), "job");
        JsonNode savepoint = request.path("restore").path(jobs.size());
        new JobGraphs(graph, loader).describe(job, savepoint.asText(""));
        jobs.add(job);
    }

    /** A bare query is planned into a sink of its own columns, which keeps nothing. */
    private ModifyOperation inFrontOfASink(QueryOperation query, String sql) {
        StringJoiner columns = new StringJoiner(", ");
        for (Column column : query.getResolvedSchema().getColumns()) {
            String type = column.getDataType().getLogicalType().copy(true).asSerializableString();
            columns.add("`" + column.getName().replace("`", "``") + "` " + type);
        }
        String sink = "`" + request.path("query_sink").asText() + "`";
        session.executeSql("DROP TEMPORARY TABLE IF EXISTS " + sink);
        session.executeSql("CREATE TEMPORARY TABLE " + sink + " (" + columns + ") WITH ('connector' = 'blackhole')");
        return (ModifyOperation) session.getParser().parse("INSERT INTO " + sink + " " + sql).get(0);
    }
}
