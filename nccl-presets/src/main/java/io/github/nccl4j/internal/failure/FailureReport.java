package io.github.nccl4j.internal.failure;

import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.NcclResultException;
import io.github.nccl4j.highlevel.Result;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.library.SystemText;
import java.time.Duration;
import java.util.List;

/** Builder of the exceptions for failed calls; the only code that creates a {@link Failure}. */
public final class FailureReport {
    private final String function;
    private final NcclLibrary library;
    private String description;
    private int rank = -1;
    private String communicatorName = "";
    private String communicatorId = "";
    private LastError.Messages messages = LastError.Messages.NOTHING;
    private String tail = "";
    private String ranks = "";
    private List<Integer> silent = List.of();
    private List<Integer> lost = List.of();

    /**
     * Begins a report.
     *
     * @param function the C function
     */
    public FailureReport(String function, NcclLibrary library) {
        this.function = function;
        this.library = library;
        description = function;
    }

    /** Sets the call with its arguments. */
    public FailureReport of(String description) {
        this.description = description;
        return this;
    }

    /** Sets the rank that made the call, or -1, and the name of the communicator, or empty. */
    public FailureReport at(int rank, String communicatorName) {
        this.rank = rank;
        this.communicatorName = communicatorName;
        return this;
    }

    /** Sets the id of the communicator, which the message has if there is no name. */
    public FailureReport id(String communicatorId) {
        this.communicatorId = communicatorId;
        return this;
    }

    public FailureReport messages(LastError.Messages messages) {
        this.messages = messages;
        return this;
    }

    /** Sets the positions of other ranks, in sentences without the last period. */
    public FailureReport ranks(String ranks) {
        this.ranks = ranks;
        return this;
    }

    /** Sets a text for the end of the message. */
    public FailureReport tail(String tail) {
        this.tail = tail;
        return this;
    }

    /** Sets the ranks that were asked and did not answer. */
    public FailureReport silent(List<Integer> silent) {
        this.silent = silent;
        return this;
    }

    /** Sets the ranks that the store reports as lost. */
    public FailureReport lost(List<Integer> lost) {
        this.lost = lost;
        return this;
    }

    /** Returns the exception for an error. */
    public NcclResultException failed(int result) {
        return exception(Result.of(result), null);
    }

    /** Returns the exception for a call that was not done in time. */
    public NcclResultException timedOut(Duration limit) {
        return exception(Result.TIMEOUT, limit);
    }

    private NcclResultException exception(Result result, Duration limit) {
        Failure.Library called =
                new Failure.Library(SystemText.text(library.path()), NativeLibrary.versionCode(), library.toString());
        Failure.Call call = new Failure.Call(function, description, rank, communicatorName, communicatorId, called);
        Failure.Ranks others = new Failure.Ranks(ranks, silent, lost);
        Failure failure = new Failure(result, limit, call, others, messages.lastError(), messages.warnings(), tail);
        return (NcclResultException) failure.toException();
    }
}
