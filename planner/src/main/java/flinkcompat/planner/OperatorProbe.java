package flinkcompat.planner;

import java.lang.reflect.Field;
import java.util.*;
import org.apache.commons.lang3.reflect.FieldUtils;
import org.apache.commons.lang3.reflect.MethodUtils;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot;
import org.apache.flink.streaming.api.graph.StreamConfig;
import org.apache.flink.streaming.api.graph.StreamNode;
import org.apache.flink.streaming.api.operators.StreamOperatorFactory;
import org.apache.flink.streaming.util.AbstractStreamOperatorTestHarness;
import org.apache.flink.util.InstantiationUtil;

/** One operator in Flink's test harness: it is initialised, and no row is processed. */
final class OperatorProbe implements AutoCloseable {
    static final int MAX_PARALLELISM = 128;

    private static final String QUEUES = "priorityQueuesManager";
    private static final List<String> REGISTERED = List.of(
        "registeredKVStates", "registeredPQStates", "registeredOperatorStates", "registeredBroadcastStates");

    private final AbstractStreamOperatorTestHarness<Object> harness;
    private final boolean opens;

    /**
     * @param opens whether the operator is opened too; sources, sinks and lookups may connect when they are
     */
    @SuppressWarnings({"unchecked", "rawtypes"})
    OperatorProbe(StreamNode node, boolean opens, ClassLoader loader) throws Exception {
        this.opens = opens;
        StreamOperatorFactory<Object> factory =
            (StreamOperatorFactory<Object>) InstantiationUtil.clone(node.getOperatorFactory(), loader);
        harness = new AbstractStreamOperatorTestHarness<>(factory, MAX_PARALLELISM, 1, 0);
        StreamConfig config = harness.getStreamConfig();
        config.setupNetworkInputs(node.getTypeSerializersIn());
        if (node.getStateKeySerializer() != null) {
            config.setStateKeySerializer(node.getStateKeySerializer());
            for (int i = 0; i < node.getStatePartitioners().length; i++) {
                config.setStatePartitioner(i, node.getStatePartitioners()[i]);
            }
        }
        config.setTypeSerializerOut(node.getTypeSerializerOut());
        config.serializeAllConfigs();
        harness.setup((TypeSerializer) node.getTypeSerializerOut());
    }

    /** Starts the operator with that state, null for none, as a task would. */
    void start(OperatorSubtaskState state) throws Exception {
        if (state == null) harness.initializeEmptyState(); else harness.initializeState(state);
        if (opens) harness.open();
    }

    /** The state of an operator that has seen no row. */
    OperatorSubtaskState snapshot() throws Exception { return harness.snapshot(1L, 1L); }

    /** What the operator registered at its backends, in a fixed order. */
    List<StateMetaInfoSnapshot> registered() throws Exception {
        List<StateMetaInfoSnapshot> found = new ArrayList<>();
        Object handler = field(field(harness, "operator"), "stateHandler");
        if (handler == null) return found;
        for (String name : List.of("keyedStateBackend", "asyncKeyedStateBackend", "operatorStateBackend")) {
            Object backend = field(handler, name);
            Object adapted = field(backend, "keyedStateBackend");
            Object[] holders = {backend, adapted, field(backend, QUEUES), field(adapted, QUEUES)};
            for (Object holder : holders) {
                for (String map : REGISTERED) {
                    if (field(holder, map) instanceof Map<?, ?> states) {
                        for (Object state : states.values()) found.add(metaInfo(state));
                    }
                }
            }
        }
        found.sort(Comparator.comparing((StateMetaInfoSnapshot each) -> each.getBackendStateType().name())
            .thenComparing(StateMetaInfoSnapshot::getName));
        return found;
    }

    @Override public void close() throws Exception { harness.close(); }

    private static StateMetaInfoSnapshot metaInfo(Object state) throws ReflectiveOperationException {
        boolean general = MethodUtils.getMatchingMethod(state.getClass(), "getMetaInfo") != null;
        Object info = MethodUtils.invokeMethod(state, true, general ? "getMetaInfo" : "getStateMetaInfo");
        return (StateMetaInfoSnapshot) MethodUtils.invokeMethod(info, true, "snapshot");
    }

    /** The value of a field of an object or of a class above its own; null where there is none. */
    static Object field(Object of, String name) {
        Field field = of == null ? null : FieldUtils.getField(of.getClass(), name, true);
        try {
            return field == null ? null : field.get(of);
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }
}
