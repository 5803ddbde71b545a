package flinkcompat.planner;

import java.io.*;
import java.util.*;
import org.apache.commons.lang3.ClassUtils;
import org.apache.flink.runtime.OperatorIDPair;
import org.apache.flink.runtime.checkpoint.*;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.jobgraph.JobVertex;
import org.apache.flink.runtime.jobgraph.OperatorID;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot;
import org.apache.flink.streaming.api.graph.*;
import org.apache.flink.streaming.api.operators.*;

/** A job as it would be submitted: its operators, what each keeps, an empty savepoint, and a dry restore of another. */
final class JobGraphs {
    private static final String FLINKS = "org\\.apache\\.flink\\.(table\\.runtime|cep|streaming|runtime)\\..*";
    private static final List<String> GENERATED = List.of("StreamExecCalc", "StreamExecCorrelate", "StreamExecExpand");

    private final StreamGraph graph;
    private final ClassLoader loader;
    private final List<OperatorState> empty = new ArrayList<>();
    private final Map<OperatorID, OperatorSubtaskState> stored = new HashMap<>();
    private final Map<String, Object> restores = new LinkedHashMap<>();

    JobGraphs(StreamGraph graph, ClassLoader loader) {
        this.graph = graph;
        this.loader = loader;
    }

    /** Writes the job into {@code job}, and how a restore from {@code savepoint} ends, where one is passed. */
    void describe(Map<String, Object> job, String savepoint) throws Exception {
        if (!savepoint.isEmpty()) read(savepoint);
        Map<Integer, byte[]> hashes = new StreamGraphHasherV2().traverseStreamGraphAndGenerateHashes(graph);
        Map<Integer, StreamNode> nodes = new TreeMap<>();
        graph.getStreamNodes().forEach(node -> nodes.put(node.getId(), node));
        Map<String, Integer> chains = chains();
        List<Object> operators = new ArrayList<>();
        for (StreamNode node : nodes.values()) {
            String hash = new OperatorID(hashes.get(node.getId())).toHexString();
            String id = node.getUserHash() == null ? hash : node.getUserHash();
            Map<String, Object> operator = operator(node, id);
            operator.put("chain", chains.get(id));
            operators.add(operator);
        }
        job.put("name", graph.getJobName());
        job.put("operators", operators);
        job.put("restores", restores);
        job.put("savepoint", written());
    }

    private Map<String, Object> operator(StreamNode node, String id) {
        StreamOperatorFactory<?> factory = node.getOperatorFactory();
        Map<String, Object> operator = new LinkedHashMap<>();
        operator.put("node", node.getId());
        operator.put("id", id);
        operator.put("uid", node.getTransformationUID());
        operator.put("name", node.getOperatorName());
        operator.put("kind", factory == null ? "" : factory.getStreamOperatorClass(loader).getName());
        operator.put("parallelism", node.getParallelism());
        operator.put("max_parallelism", Reflected.field(node, "maxParallelism")); // no public getter in 1.20
        operator.put("inputs", node.getInEdges().stream().map(StreamEdge::getSourceId).toList());
        keep(operator, node, factory, new OperatorID(HexFormat.of().parseHex(id)));
        return operator;
    }

    /** Whether the operator keeps state, how that is known, and what it registers. */
    private void keep(
            Map<String, Object> operator, StreamNode node, StreamOperatorFactory<?> factory, OperatorID key) {
        String type = (String) operator.get("kind");
        String factoryName = factory == null ? "" : factory.getClass().getSimpleName();
        boolean keyed = node.getStateKeySerializer() != null;
        if (factory == null) {
            kept(operator, "no", "no operator", "");
        } else if (factoryName.equals("SourceOperatorFactory")) {
            kept(operator, "yes", "source", name(Reflected.field(factory, "source")));
        } else if (factoryName.equals("CommitterOperatorFactory")) {
            kept(operator, "yes", "committer", "");
        } else if (factoryName.contains("SinkWriterOperatorFactory")) {
            Object sink = Reflected.field(factory, "sink");
            boolean state = implementsAny(sink, "SupportsWriterState", "StatefulSink");
            kept(operator, state ? "yes" : "no", "sink writer", name(sink));
        } else {
            Object function = userFunction(factory);
            boolean checkpointed = implementsAny(function, "CheckpointedFunction", "ListCheckpointed");
            String classes = type + " " + name(function);
            boolean waits = classes.contains("AsyncWait");
            boolean lookup = classes.contains("ookup") && !waits;
            boolean generated = GENERATED.stream().anyMatch(type::startsWith);
            if (generated && !keyed) {
                kept(operator, "no", "generated", "");
            } else if (!type.matches(FLINKS) || classes.contains("ython")) {
                kept(operator, "may", "class", name(function));
            } else if (lookup) { // opening it connects
                kept(operator, keyed ? "may" : "no", "lookup", name(function));
            } else {
                boolean edge = node.getInEdges().isEmpty() || node.getOutEdges().isEmpty();
                kept(operator, checkpointed || keyed ? "may" : "no", "not opened", name(function));
                probe(operator, node, !waits && (!edge || keyed), key);
            }
        }
    }

    private void probe(Map<String, Object> operator, StreamNode node, boolean opens, OperatorID key) {
        try (OperatorProbe probe = new OperatorProbe(node, graph.getExecutionConfig(), opens, null, loader)) {
            OperatorSubtaskState snapshot = probe.snapshot();
            List<Object> states = new ArrayList<>();
            for (StateMetaInfoSnapshot state : OperatorProbe.registered(snapshot, loader)) {
                states.add(Map.of("name", state.getName(), "kind", state.getBackendStateType().name(),
                    "options", new TreeMap<>(state.getOptionsImmutable())));
            }
            kept(operator, states.isEmpty() ? "no" : "yes", "opened", (String) operator.get("component"));
            operator.put("states", states);
            if (states.isEmpty()) return;
            OperatorState state = Reflected.made(OperatorState.class, key, 1, OperatorProbe.MAX_PARALLELISM);
            state.putState(0, snapshot);
            empty.add(state);
        } catch (Throwable e) {
            operator.put("failure", Main.chain(e));
            return;
        }
        if (!stored.containsKey(key)) return;
        try (OperatorProbe probe = new OperatorProbe(
                node, graph.getExecutionConfig(), opens, stored.get(key), loader)) {
            restores.put(key.toHexString(), List.of());
        } catch (Throwable e) {
            restores.put(key.toHexString(), Main.chain(e));
        }
    }

    private static void kept(Map<String, Object> operator, String keeps, String basis, String component) {
        operator.put("keeps", keeps);
        operator.put("basis", basis);
        operator.put("component", component);
    }

    /** By OperatorID the number of its vertex in the job graph, which is a chain of operators. */
    private Map<String, Integer> chains() {
        Map<String, Integer> chains = new HashMap<>();
        int number = 0;
        for (JobVertex vertex : graph.getJobGraph().getVerticesSortedTopologicallyFromSources()) {
            for (OperatorIDPair pair : vertex.getOperatorIDs()) {
                OperatorID id = pair.getUserDefinedOperatorID().orElse(pair.getGeneratedOperatorID());
                chains.put(id.toHexString(), number);
            }
            number++;
        }
        return chains;
    }

    /** The savepoint of a job that has read no row, in Flink's own format, which every later line reads. */
    private String written() throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        Checkpoints.storeCheckpointMetadata(new CheckpointMetadata(1L, empty, List.of()), bytes);
        return Base64.getEncoder().encodeToString(bytes.toByteArray());
    }

    private void read(String savepoint) throws IOException {
        InputStream bytes = new ByteArrayInputStream(Base64.getDecoder().decode(savepoint));
        Checkpoints.loadCheckpointMetadata(new DataInputStream(bytes), loader, "memory").getOperatorStates()
            .forEach(state -> stored.put(state.getOperatorID(), state.getState(0)));
    }

    private static Object userFunction(StreamOperatorFactory<?> factory) {
        Object operator = factory instanceof SimpleOperatorFactory<?> simple
            ? simple.getOperator() : Reflected.field(factory, "operator");
        return operator instanceof AbstractUdfStreamOperator<?, ?> udf ? udf.getUserFunction() : null;
    }

    private static String name(Object of) { return of == null ? "" : of.getClass().getName(); }

    private static boolean implementsAny(Object of, String... names) {
        List<Class<?>> found = of == null ? List.of() : ClassUtils.getAllInterfaces(of.getClass());
        return found.stream().anyMatch(each -> List.of(names).contains(each.getSimpleName()));
    }
}
