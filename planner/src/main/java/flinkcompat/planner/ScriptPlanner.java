package flinkcompat.planner;

import java.util.*;
import java.util.regex.Pattern;
import org.apache.commons.lang3.ArrayUtils;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.graph.StreamGraph;
import org.apache.flink.table.api.*;
import org.apache.flink.table.api.internal.TableEnvironmentImpl;
import org.apache.flink.table.catalog.*;
import org.apache.flink.table.delegation.Executor;
import org.apache.flink.table.operations.*;
import org.apache.flink.table.operations.command.*;
import org.apache.flink.table.operations.ddl.*;

/** One script in a session of its own: its statements in order, and every job that they would submit. */
final class ScriptPlanner {
    /** What is carried out: it changes nothing but the session, whose catalogs are all in memory. */
    private static final Pattern DECLARES = Pattern.compile(
        "(Create(Table|View|CatalogFunction|TempSystemFunction|Database|Model)|Use(Catalog|Database)|(Unl|L)oadModule"
        + "|Drop(Table|View|CatalogFunction|TempSystemFunction|Database|Catalog|Model)"
        + "|Alter(Table(Change|Options|Schema|Rename)|View(As|Rename|Properties)|CatalogFunction)|Nop)Operation");

    /** What changes nothing at all. */
    private static final Pattern SHOWS = Pattern.compile("(Show|Describe|Explain|Quit|Help|Clear).*");

    /** Statements that outside of the session change what lasts, or cannot be carried out without it. */
    private static final Pattern LASTS = Pattern.compile(
        "(?is)(\\s|--[^\\n]*\\n|/\\*.*?\\*/)*((DROP|ALTER)(?!\\s+TEMPORARY)|CREATE\\s+(OR\\s+ALTER\\s+)?MATERIALIZED"
        + "|CALL|UPDATE|DELETE|TRUNCATE|ANALYZE|REFRESH|ADD|REMOVE|(UN)?LOAD|STOP|COMPILE|EXECUTE\\s+PLAN)\\b.*");

    private final JsonNode request;
    private final Configuration initial = new Configuration();
    private final TableEnvironmentImpl session;
    private final StandIns standIns;
    private final ClassLoader loader;
    private final List<Object> jobs = new ArrayList<>();
    private final Set<Integer> lasting = new TreeSet<>();
    private final Map<String, String> catalogs = new TreeMap<>();

    ScriptPlanner(JsonNode request, ClassLoader loader) {
        this.request = request;
        this.loader = loader;
        initial.setString("parallelism.default", "1"); // else the cores of this machine, on which chains depend
        request.path("settings").fields().forEachRemaining(each ->
            initial.setString(each.getKey(), each.getValue().asText()));
        session = (TableEnvironmentImpl) TableEnvironment.create(EnvironmentSettings.newInstance()
            .inStreamingMode().withConfiguration(initial).withClassLoader(loader).build());
        standIns = new StandIns(request);
        session.loadModule(StandIns.NAME, standIns);
    }

    void plan(Map<String, Object> answer) {
        int number = 0;
        try {
            for (JsonNode statement : request.path("statements")) {
                carryOut(statement.asText(), number);
                number++;
            }
        } catch (Throwable e) {
            answer.put("refusal", Map.of("statement", number, "chain", Main.chain(e)));
        }
        answer.put("jobs", jobs);
        answer.put("stand_ins", standIns.used);
        answer.put("guessed", standIns.guessed);
        answer.put("lookups", standIns.lookups);
        answer.put("catalogs", catalogs);
        answer.put("lasting", lasting);
    }

    private void carryOut(String sql, int number) throws Exception {
        boolean lasts = LASTS.matcher(sql).matches();
        if (lasts) lasting.add(number);
        try {
            for (Operation operation : session.getParser().parse(sql)) carryOut(operation, sql, number);
        } catch (Exception e) { // what it changes may be there elsewhere
            String said = Main.chain(e).toString();
            boolean wrong = said.contains("SqlParserException") || said.contains("Failed to execute ALTER");
            if (!lasts || wrong) throw e;
        }
    }

    private void carryOut(Operation operation, String sql, int number) throws Exception {
        String kind = operation.getClass().getSimpleName();
        if (operation instanceof SetOperation set) {
            set.getKey().ifPresent(key -> session.getConfig().set(key, set.getValue().orElse("")));
        } else if (operation instanceof ResetOperation reset) {
            reset(reset.getKey().map(Set::of).orElseGet(() -> session.getConfig().getConfiguration().keySet()));
        } else if (operation instanceof StatementSetOperation set) {
            job(set.getOperations(), number);
        } else if (operation instanceof SinkModifyOperation insert) {
            job(List.of(insert), number);
        } else if (operation instanceof QueryOperation query) {
            job(List.of(inFrontOfASink(query, sql)), number);
        } else if (operation instanceof CreateTableASOperation created) {
            lasting.add(number);
            session.executeInternal(created.getCreateTableOperation());
            job(List.of(created.toSinkModifyOperation(session.getCatalogManager())), number);
        } else if (operation instanceof ReplaceTableAsOperation replaced) {
            lasting.add(number);
            CreateTableOperation table = replaced.getCreateTableOperation();
            session.executeSql("DROP TABLE IF EXISTS " + table.getTableIdentifier().asSerializableString());
            session.executeInternal(table);
            job(List.of(replaced.toSinkModifyOperation(session.getCatalogManager())), number);
        } else if (operation instanceof CreateCatalogOperation catalog) {
            create(catalog);
        } else if (operation instanceof UseModulesOperation use) {
            session.useModules(ArrayUtils.insert(0, use.getModuleNames().toArray(String[]::new), StandIns.NAME));
        } else if (DECLARES.matcher(kind).matches()) {
            session.executeInternal(operation);
        } else if (!SHOWS.matcher(kind).matches()) {
            lasting.add(number);
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
            public boolean supportsManagedTable() { return false; } // asked up to 1.20
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
        Schema.Builder columns = Schema.newBuilder();
        for (Column column : query.getResolvedSchema().getColumns()) {
            columns.column(column.getName(), column.getDataType().getLogicalType().copy(true).asSerializableString());
        }
        String sink = request.path("query_sink").asText();
        session.dropTemporaryTable(sink);
        session.createTemporaryTable(sink, TableDescriptor.forConnector("blackhole").schema(columns.build()).build());
        return (ModifyOperation) session.getParser().parse("INSERT INTO `" + sink + "` " + sql).get(0);
    }
}
