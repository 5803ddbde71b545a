package flinkcompat.planner;

import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.api.common.JobID;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.DeploymentOptions;
import org.apache.flink.core.execution.*;
import org.apache.flink.runtime.operators.coordination.CoordinationRequestGateway;
import org.apache.flink.streaming.api.graph.StreamGraph;

/** The executor of the target {@link #NAME}: keeps the graph that would be submitted, and submits nothing. */
public final class CapturingExecutor implements PipelineExecutorFactory {
    static final String NAME = "flinkcompat-plan-only";

    /** The graph of the last execution; the process plans one script at a time. */
    static StreamGraph captured;

    @Override public String getName() { return NAME; }

    @Override public boolean isCompatibleWith(Configuration configuration) {
        return NAME.equals(configuration.get(DeploymentOptions.TARGET));
    }

    @Override public PipelineExecutor getExecutor(Configuration configuration) {
        return (pipeline, settings, loader) -> {
            captured = (StreamGraph) pipeline;
            return CompletableFuture.completedFuture(client(new JobID()));
        };
    }

    private static JobClient client(JobID id) {
        Class<?>[] types = {JobClient.class, CoordinationRequestGateway.class};
        return (JobClient) Proxy.newProxyInstance(CapturingExecutor.class.getClassLoader(), types,
            (proxy, method, given) -> switch (method.getName()) {
                case "getJobID" -> id;
                case "getJobExecutionResult" -> CompletableFuture.completedFuture(new JobExecutionResult(id, 0, Map.of()));
                default -> throw new UnsupportedOperationException("nothing runs: " + method.getName());
            });
    }
}
