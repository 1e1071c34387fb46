package io.github.nccl4j.tools.perf;

import com.google.gson.stream.JsonWriter;
import io.github.nccl4j.highlevel.Device;
import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.bytedeco.cuda.global.cudart;

/** The process and the device of a rank. */
record RankDevice(int rank, long pid, String host, int device, String bus, String name) {
    private static final int BYTES = 512;
    private static final String SEPARATOR = "\t";

    private static RankDevice of(Member member) {
        Device device = member.communicator.device();
        return new RankDevice(
                member.rank(),
                ProcessHandle.current().pid(),
                hostName(),
                device.isHost() ? 0 : device.index(),
                device.isHost() ? "-" : Cuda.bus(device.index()),
                name(device));
    }

    /** The name of a device's model. */
    static String name(Device device) {
        return device.isHost() ? "host memory" : Cuda.name(device.index());
    }

    private static String hostName() {
        try {
            return InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException e) {
            return "localhost";
        }
    }

    /** A class of its own, so that the bindings of CUDA are loaded only if needed. */
    private static final class Cuda {
        static String bus(int index) {
            byte[] id = new byte[32];
            cudart.cudaDeviceGetPCIBusId(id, id.length, index);
            String text = new String(id, StandardCharsets.US_ASCII);
            // nccl-tests prints lower case, without the function: 0000:1b:00.
            String shorter = text.substring(0, text.indexOf('\0')).toLowerCase(Locale.ROOT);
            int dot = shorter.indexOf('.');
            return dot < 0 ? shorter : shorter.substring(0, dot);
        }

        static String name(int index) {
            byte[] name = new byte[256];
            cudart.cuDeviceGetName(name, name.length, index);
            String text = new String(name, StandardCharsets.UTF_8);
            return text.substring(0, text.indexOf('\0'));
        }
    }

    /** The devices of all ranks, by rank. Collective. */
    static List<RankDevice> ofAll(List<Member> members, Processes processes) {
        byte[] own = new byte[BYTES * members.size()];
        for (int i = 0; i < members.size(); i++) {
            byte[] text = of(members.get(i)).text().getBytes(StandardCharsets.UTF_8);
            System.arraycopy(text, 0, own, BYTES * i, Math.min(text.length, BYTES - 1));
        }
        List<RankDevice> devices = new ArrayList<>();
        for (byte[] all : processes.gather(own)) {
            for (int at = 0; at < all.length; at += BYTES) {
                devices.add(parse(new String(all, at, BYTES, StandardCharsets.UTF_8)));
            }
        }
        return devices;
    }

    private String text() {
        return String.join(SEPARATOR, "" + rank, "" + pid, host, "" + device, bus, name);
    }

    private static RankDevice parse(String text) {
        String[] words = text.substring(0, text.indexOf('\0')).split(SEPARATOR, 6);
        return new RankDevice(
                Integer.parseInt(words[0]),
                Long.parseLong(words[1]),
                words[2],
                Integer.parseInt(words[3]),
                words[4],
                words[5]);
    }

    /** The line of this rank in the heading of the table. */
    String line() {
        return String.format(
                Locale.ROOT,
                "#  Rank %2d Group %2d Pid %6d on %10s device %2d [%s] %s",
                rank,
                0,
                pid,
                host,
                device,
                bus,
                name);
    }

    void write(JsonWriter json) throws IOException {
        json.beginObject();
        json.name("rank").value(rank);
        json.name("group").value(0);
        json.name("pid").value(pid);
        json.name("hostname").value(host);
        json.name("device").value(device);
        json.name("device_hex").value(bus);
        json.name("device_info").value(name);
        json.endObject();
    }
}
