import com.sun.jdi.Bootstrap;
import com.sun.jdi.Method;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.connect.AttachingConnector;
import com.sun.jdi.connect.Connector;
import com.sun.jdi.event.BreakpointEvent;
import com.sun.jdi.event.Event;
import com.sun.jdi.event.EventSet;
import com.sun.jdi.request.BreakpointRequest;
import com.sun.jdi.request.EventRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Holds the first thread that calls a method, through the debugger's interface; all others go on. Arguments: port, class, method. */
public class Hold {
    public static void main(String[] args) throws Exception {
        AttachingConnector connector = Bootstrap.virtualMachineManager().attachingConnectors().stream()
            .filter(one -> one.name().equals("com.sun.jdi.SocketAttach")).findFirst().orElseThrow();
        Map<String, Connector.Argument> given = connector.defaultArguments();
        given.get("hostname").setValue("127.0.0.1");
        given.get("port").setValue(args[0]);
        VirtualMachine machine = connector.attach(given);
        List<BreakpointRequest> requests = new ArrayList<>();
        for (ReferenceType type : machine.classesByName(args[1])) {
            for (Method method : type.methodsByName(args[2])) {
                BreakpointRequest request = machine.eventRequestManager().createBreakpointRequest(method.location());
                request.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
                request.enable();
                requests.add(request);
            }
        }
        System.out.println("waits at " + requests.size());
        while (true) {
            EventSet events = machine.eventQueue().remove();
            String held = null;
            for (Event event : events) {
                if (event instanceof BreakpointEvent) {
                    held = ((BreakpointEvent) event).thread().name();
                }
            }
            if (held != null) {
                requests.forEach(BreakpointRequest::disable);
                System.out.println("holds " + held);
                System.in.read();
                machine.dispose();
                System.out.println("lets go");
                return;
            }
            events.resume();
        }
    }
}
