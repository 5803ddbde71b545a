package flinkcompat.planner;

import java.util.*;
import java.util.regex.Pattern;
import org.apache.commons.lang3.ArrayUtils;
import org.apache.flink.api.dag.Transformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.graph.StreamGraph;
import org.apache.flink.table.api.*;
import org.apache.flink.table.api.internal.TableEnvironmentImpl;
import org.apache.flink.table.catalog.*;
import org.apache.flink.table.delegation.*;
import org.apache.flink.table.operations.*;
import org.apache.flink.table.operations.command.*;
import org.apache.flink.table.operations.ddl.*;
import org.apache.flink.table.planner.plan.ExecNodeGraphInternalPlan;
import org.apache.flink.table.planner.plan.nodes.exec.ExecNode;
import org.apache.flink.table.planner.plan.nodes.exec.visitor.*;

/** One script in a session of its own: its statements in order, and every job that they would submit. */
final class ScriptPlanner {
    /** What is carried out: it changes nothing but the session, whose catalogs are all in memory. */
    private static final Pattern DECLARES = Pattern.compile(
        "((Create|Drop)(Table|View|CatalogFunction|TempSystemFunction|Database|Catalog|Model)|Use(Catalog|Database)"
        + "|Alter(Table(Change|Options|Schema|Rename)|View(As|Rename|Properties)|CatalogFunction)"
        + "|(Unl|L)oadModule|Nop)Operation");

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
    private final List<Object> jobs = new ArrayList<>();
    private final Set<Integer> lasting = new TreeSet<>();
    private final Map<String, String> catalogs = new TreeMap<>();

    ScriptPlanner(JsonNode request) {
        this.request = request;
        initial.setString("parallelism.default", "1"); // else the cores of this machine, on which chains depend
        request.path("settings").fields().forEachRemaining(each ->
            initial.setString(each.getKey(), each.getValue().asText()));
        session = (TableEnvironmentImpl) TableEnvironment.create(initial);
        standIns = new StandIns(request);
        session.loadModule(StandIns.NAME, standIns);
    }

    void plan(Map<String, Object> answer) {
        answer.putAll(Map.of("jobs", jobs, "catalogs", catalogs, "lasting", lasting, "stand_ins", standIns.used(),
            "guessed", standIns.guessed(), "lookups", standIns.lookups()));
        int number = 0;
        try {
            for (; number < request.path("statements").size(); number++) {
                carryOut(request.path("statements").path(number).asText(), number);
            }
        } catch (Throwable e) {
            answer.put("refusal", Map.of("statement", number, "chain", Main.chain(e)));
        }
    }

    private void carryOut(String sql, int number) throws Exception {
        boolean lasts = LASTS.matcher(sql).matches();
        if (lasts) lasting.add(number);
        try {
            for (Operation operation : session.getParser().parse(sql)) carryOut(operation, number);
        } catch (Exception e) { // what it changes may be there elsewhere
            String said = Main.chain(e).toString();
            boolean wrong = said.contains("SqlParserException") || said.contains("Failed to execute ALTER");
            if (!lasts || wrong) throw e;
        }
    }

    private void carryOut(Operation operation, int number) throws Exception {
        String kind = operation.getClass().getSimpleName();
        if (operation instanceof SetOperation set) {
            set.getKey().ifPresent(key -> session.getConfig().set(key, set.getValue().orElse("")));
        } else if (operation instanceof ResetOperation reset) {
            reset(reset.getKey().map(Set::of).orElseGet(() -> session.getConfig().getConfiguration().keySet()));
        } else if (operation instanceof StatementSetOperation set) {
            job(set.getOperations());
        } else if (operation instanceof SinkModifyOperation insert) {
            job(List.of(insert));
        } else if (operation instanceof QueryOperation query) {
            job(List.of(inFrontOfASink(query)));
        } else if (operation instanceof CreateTableASOperation created) {
            lasting.add(number);
            session.executeInternal(created.getCreateTableOperation());
            job(List.of(created.toSinkModifyOperation(session.getCatalogManager())));
        } else if (operation instanceof ReplaceTableAsOperation replaced) {
            lasting.add(number);
            CreateTableOperation table = replaced.getCreateTableOperation();
            session.executeSql("DROP TABLE IF EXISTS " + table.getTableIdentifier().asSerializableString());
            session.executeInternal(table);
            job(List.of(replaced.toSinkModifyOperation(session.getCatalogManager())));
        } else if (operation instanceof CreateCatalogOperation catalog
                && !"generic_in_memory".equals(catalog.getProperties().get("type"))) {
            replace(catalog);
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
    private void replace(CreateCatalogOperation catalog) {
        catalogs.put(catalog.getCatalogName(), String.valueOf(catalog.getProperties().get("type")));
        String first = catalog.getProperties().getOrDefault("default-database", "default");
        session.registerCatalog(catalog.getCatalogName(), new GenericInMemoryCatalog(catalog.getCatalogName(), first) {
            @Override public boolean databaseExists(String name) { return true; } // which ones it holds is not known
            @Override public void createDatabase(String name, CatalogDatabase database, boolean ignoreIfExists) {}
            public boolean supportsManagedTable() { return false; } // asked up to 1.20
        });
    }

    private void job(List<ModifyOperation> operations) throws Exception {
        Map<String, Object> job = new LinkedHashMap<>();
        StreamGraph graph = (StreamGraph) ((Executor) Reflected.field(session, "execEnv"))
            .createPipeline(translated(operations, job), session.getConfig().getConfiguration(), "job");
        new JobGraphs(graph).describe(job, request.path("restore").path(jobs.size()).binaryValue());
        jobs.add(job);
    }

    /** The operators of a job, which is planned once and compiled on the way where Flink compiles it. */
    private List<Transformation<?>> translated(List<ModifyOperation> operations, Map<String, Object> job) {
        InternalPlan plan;
        try {
            plan = session.getPlanner().compilePlan(operations);
            job.put("plan", Main.JSON.readTree(plan.asJsonString()));
        } catch (Throwable e) {
            return session.getPlanner().translate(operations); // it says as well what is wrong with the script
        }
        ExecNodeVisitor submitted = new AbstractExecNodeExactlyOnceVisitor() {
            @Override protected void visitNode(ExecNode<?> node) {
                node.setCompiled(false); // else its operators have uids
                visitInputs(node);
            }
        };
        ((ExecNodeGraphInternalPlan) plan).getExecNodeGraph().getRootNodes().forEach(submitted::visit);
        return session.getPlanner().translatePlan(plan);
    }

    /** A bare query is planned into a sink of its own columns, which keeps nothing. */
    private ModifyOperation inFrontOfASink(QueryOperation query) throws IllegalAccessException {
        Schema.Builder columns = Schema.newBuilder();
        for (Column column : query.getResolvedSchema().getColumns()) {
            columns.column(column.getName(), column.getDataType().getLogicalType().copy(true).asSerializableString());
        }
        String sink = request.path("query_sink").asText();
        session.dropTemporaryTable(sink);
        session.createTemporaryTable(sink, TableDescriptor.forConnector("blackhole").schema(columns.build()).build());
        return (ModifyOperation) Reflected.field(session.createTable(query).insertInto(sink), "operation");
    }
}
