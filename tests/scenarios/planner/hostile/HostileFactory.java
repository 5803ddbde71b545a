package hostile;

import java.io.*;
import java.net.*;
import java.nio.file.*;
import java.util.*;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.factories.DynamicTableSourceFactory;

/** A connector whose factory does what no factory should, then names what came of it. */
public final class HostileFactory implements DynamicTableSourceFactory {
    private static final ConfigOption<String> DOES = ConfigOptions.key("does").stringType().noDefaultValue();
    private static final ConfigOption<String> WITH = ConfigOptions.key("with").stringType().defaultValue("");

    @Override public String factoryIdentifier() { return "hostile"; }

    @Override public Set<ConfigOption<?>> requiredOptions() { return Set.of(DOES); }

    @Override public Set<ConfigOption<?>> optionalOptions() { return Set.of(WITH); }

    @Override public DynamicTableSource createDynamicTableSource(Context context) {
        Map<String, String> options = context.getCatalogTable().getOptions();
        String came;
        try {
            came = act(options.get("does"), options.getOrDefault("with", ""));
        } catch (IOException | InterruptedException e) {
            came = e.toString();
        }
        throw new IllegalStateException("it came to " + came);
    }

    private static String act(String does, String with) throws IOException, InterruptedException {
        switch (does) {
            case "exit": System.exit(7);
            case "halt": Runtime.getRuntime().halt(7);
            case "loop": while (true) Thread.onSpinWait();
            case "memory": for (List<long[]> all = new ArrayList<>(); ; ) all.add(new long[1 << 20]);
            case "stack": return act(does, with) + with;
            case "threads":
                for (int i = 0; i < 100; i++) new Thread(() -> { while (true) Thread.onSpinWait(); }).start();
                return "threads";
            case "processes":
                new ProcessBuilder("sh", "-c", "nohup setsid sleep " + with + " & sleep " + with).inheritIO().start();
                return "processes";
            case "kill":
                return "exit code " + new ProcessBuilder("sh", "-c", "kill -9 $PPID").start().waitFor();
            case "connect":
                try (Socket socket = new Socket(InetAddress.getByName("127.0.0.1"), Integer.parseInt(with))) {
                    return "a connection";
                }
            case "listen":
                new ServerSocket(Integer.parseInt(with));
                return "a port";
            case "output":
                OutputStream out = new FileOutputStream(FileDescriptor.out);
                for (int i = 0; i < 200; i++) out.write("x".repeat(10_000).getBytes());
                for (int i = 0; i < 15_000; i++) System.err.println("y".repeat(10_000));
                out.write('\n');
                return "output";
            case "disk":
                byte[] block = new byte[1 << 20];
                try (OutputStream file = Files.newOutputStream(Files.createTempFile("hostile", with))) {
                    for (int i = 0; i < 2_000; i++) file.write(block);
                }
                return "a full disk";
            case "write":
                Files.writeString(Path.of(with), "left");
                return "a file";
            default: throw new IllegalArgumentException(does);
        }
    }
}
