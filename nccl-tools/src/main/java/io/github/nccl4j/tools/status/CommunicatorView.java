package io.github.nccl4j.tools.status;

import com.google.gson.Gson;
import com.google.gson.JsonSyntaxException;

/**
 * A rank's answer about one communicator: the fields of its JSON object, which may all be missing. Set by Gson.
 */
final class CommunicatorView {
    private static final Gson GSON = new Gson();
    private static final String FORMAT = "nccl4j communicator 1";

    String format;
    String id;
    String name;
    int rank;
    int size;
    String host;
    long process;
    String device;
    String state;
    String failure;
    long recorded;
    Long collectives;
    long at;
    String operation;
    Double seconds;
    String stream;
    String call;
    Double callSeconds;
    long done;
    String doneOperation;
    Double doneSeconds;

    /** Reads a text of a rank; returns null if it is not about a communicator. */
    static CommunicatorView read(String text) {
        if (!text.startsWith("{\"format\": \"" + FORMAT + "\"")) {
            return null;
        }
        try {
            CommunicatorView view = GSON.fromJson(text, CommunicatorView.class);
            return view.id == null ? null : view;
        } catch (JsonSyntaxException invalid) {
            return null;
        }
    }

    /** "874e9f1a", or "'model' (874e9f1a)" with a name. */
    String label() {
        return name == null || name.isEmpty() ? id : "'" + name + "' (" + id + ")";
    }

    /** "ncclAllReduce of 64 int32 (operation 4) for 3.2 s", or a call that is no operation. */
    String position() {
        if (call != null) {
            return waitsIn();
        }
        if (state != null && !"OPEN".equals(state)) {
            return state.toLowerCase(java.util.Locale.ROOT) + (failure == null ? "" : ": " + failure);
        }
        if (failure != null) {
            return "failed: " + failure;
        }
        if (operation != null) {
            return operation + " (operation " + at + ")" + (seconds == null ? "" : " for " + Texts.seconds(seconds));
        }
        return recorded == 0 ? "nothing called yet" : "nothing under way";
    }

    /** "ncclCommSplit for 3.2 s", of a rank that waits in a call that is no operation. */
    String waitsIn() {
        return call + (callSeconds == null ? "" : " for " + Texts.seconds(callSeconds));
    }

    /** "operation 3, 0.2 s ago"; "-" if none was observed as done. */
    String lastDone() {
        return doneOperation == null ? "-" : "operation " + done + ", " + Texts.seconds(doneSeconds) + " ago";
    }
}
