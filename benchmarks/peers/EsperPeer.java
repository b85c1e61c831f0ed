import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.common.client.EventSender;
import com.espertech.esper.common.client.util.EventTypeBusModifier;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.DeploymentOptions;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.espertech.esper.runtime.client.EPStatement;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Random;

/**
 * Events a second of Esper on one thread, one event a millisecond of its clock.
 *
 * <p>{@code java -cp JARS EsperPeer.java STATEMENT COPIES KEYS WARM SECONDS STREAM…}: a text {@code ?:key:string} of the
 * statement is K0, K1, … in its copies; the streams take turns of 10,000 events. Events are object arrays made beforehand;
 * a listener takes what is delivered.
 */
public final class EsperPeer {
    private static final int POOL = 1 << 17;
    private static final String SCHEMA =
            "create objectarray schema S(symbol string, price double, volume int); create context C partition by symbol from S;"
                    + " create objectarray schema R(symbol string, price double, volume int)";
    private static final int TURN = 10_000;
    private static final ThreadMXBean CPU = ManagementFactory.getThreadMXBean();

    private static long delivered;
    private static final Configuration SETTINGS = new Configuration();

    private static void deploy(EPRuntime runtime, String text, int copies) throws Exception {
        CompilerArguments path = new CompilerArguments(SETTINGS);
        path.getPath().add(runtime.getRuntimePath());
        EPCompiled compiled = EPCompilerProvider.getCompiler().compile(text, path);
        for (int copy = 0; copy < copies; copy++) {
            String key = "K" + copy;
            DeploymentOptions options = new DeploymentOptions();
            if (text.contains("?:key")) options.setStatementSubstitutionParameter(each -> each.setObject("key", key));
            for (EPStatement each : runtime.getDeploymentService().deploy(compiled, options).getStatements()) {
                each.addListener((come, left, statement, from) -> delivered += come == null ? 0 : come.length);
            }
        }
    }

    private static Object[][] events(int keys) {
        Random random = new Random(7);
        Object[][] made = new Object[POOL][];
        for (int i = 0; i < POOL; i++) {
            made[i] = new Object[] {"K" + random.nextInt(keys), random.nextInt(10_000) / 100.0, random.nextInt(100)};
        }
        return made;
    }

    public static void main(String[] given) throws Exception {
        SETTINGS.getRuntime().getThreading().setInternalTimerEnabled(false);
        SETTINGS.getCompiler().getByteCode().setAccessModifiersPublic();
        SETTINGS.getCompiler().getByteCode().setBusModifierEventType(EventTypeBusModifier.BUS);
        EPRuntime runtime = EPRuntimeProvider.getRuntime("peer", SETTINGS);
        runtime.getEventService().clockExternal();
        runtime.getEventService().advanceTime(0);
        deploy(runtime, SCHEMA, 1);
        deploy(runtime, given[0], Integer.parseInt(given[1]));
        Object[][] events = events(Integer.parseInt(given[2]));
        var senders = new EventSender[given.length - 5];
        for (int i = 0; i < senders.length; i++) senders[i] = runtime.getEventService().getEventSender(given[5 + i]);
        long warm = (long) (Double.parseDouble(given[3]) * 1e9), wanted = (long) (Double.parseDouble(given[4]) * 1e9);
        long start = System.nanoTime(), began = 0, beganCpu = 0, sent = 0, sentBefore = 0;
        while (began == 0 || System.nanoTime() - began < wanted) {
            for (int i = 0; i < 256; i++) {
                runtime.getEventService().advanceTime(++sent);
                senders[(int) (sent / TURN % senders.length)].sendEvent(events[(int) (sent & (POOL - 1))]);
            }
            if (began == 0 && System.nanoTime() - start > warm) {
                began = System.nanoTime();
                beganCpu = CPU.getCurrentThreadCpuTime();
                sentBefore = sent;
            }
        }
        double seconds = (System.nanoTime() - began) / 1e9, cpu = (CPU.getCurrentThreadCpuTime() - beganCpu) / 1e9;
        long counted = sent - sentBefore;
        System.out.printf("%.0f events/s, %.0f a processor second, %d rows%n", counted / seconds, counted / cpu, delivered);
    }
}
