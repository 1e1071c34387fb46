package io.github.nccl4j.tools.analyze;

import io.github.nccl4j.tools.launch.CommandErrors;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The records in a folder: files of nccl4j's recorder and profiler, and dumps of torch.
 *
 * @param records the records, in the order of the names of their files
 * @param profile the files of the profiler, which may be none
 * @param unreadable a message for each file that should be a record and can't be read
 * @param pickles a message for each file that is a pickle and so may be a dump
 */
record RecordFolder(List<RankRecord> records, Profile profile, List<String> unreadable, List<String> pickles) {
    private static final int BEGINNING = 4096;

    /** Protocol 2 and later: the first byte of a pickle. */
    private static final int PICKLE = 0x80;

    private static final int MAX_REASON = 300;
    private static final int MAX_LISTED = 10;

    /**
     * Reads all files of a folder, and ignores those of other programs. A file that can't be read does not keep the others from
     * being read.
     *
     * @throws NoRecordsException if the folder has no record that can be read
     * @throws IOException if the folder can't be read
     */
    static RecordFolder read(Path folder) throws IOException {
        List<Path> files;
        try (Stream<Path> all = Files.list(folder)) {
            files = all.filter(Files::isRegularFile).sorted().toList();
        }
        List<RankRecord> records = new ArrayList<>();
        Profile profile = new Profile();
        List<String> unreadable = new ArrayList<>();
        List<String> pickles = new ArrayList<>();
        for (Path file : files) {
            String problem;
            try {
                problem = read(file, records, profile, pickles);
            } catch (IOException damaged) {
                problem = CommandErrors.reason(damaged);
            } catch (RuntimeException damaged) {
                problem = "a value has another form than in a record";
            } catch (OutOfMemoryError large) {
                problem = "it needs more memory than this process has; -Xmx in JAVA_TOOL_OPTIONS gives more";
            }
            if (problem != null) {
                unreadable.add(file + ": " + problem.substring(0, Math.min(problem.length(), MAX_REASON)));
            }
        }
        if (records.isEmpty()) {
            List<String> reasons = new ArrayList<>(pickles);
            reasons.addAll(unreadable);
            throw new NoRecordsException(
                    reasons.isEmpty()
                            ? folder
                                    + " has no records: set -Dnccl4j.recorder.dump or NCCL4J_RECORDER_DUMP to a folder, or"
                                    + " call FlightRecorder.dumpAll on each rank"
                            : folder + " has no record that can be read:\n"
                                    + reasons.stream().limit(MAX_LISTED).collect(Collectors.joining("\n"))
                                    + (reasons.size() > MAX_LISTED
                                            ? "\nand " + (reasons.size() - MAX_LISTED) + " more files"
                                            : ""));
        }
        return new RecordFolder(List.copyOf(records), profile, List.copyOf(unreadable), List.copyOf(pickles));
    }

    /** Reads a file; returns the reason if it is too large, else null. */
    private static String read(Path file, List<RankRecord> records, Profile profile, List<String> pickles)
            throws IOException {
        boolean isProfile = Profile.isProfile(file.getFileName().toString());
        boolean named = RecorderFile.NAME.matcher(file.getFileName().toString()).matches();
        byte[] beginning;
        try (InputStream in = Files.newInputStream(file)) {
            beginning = in.readNBytes(BEGINNING);
        }
        String text =
                StandardCharsets.ISO_8859_1.decode(ByteBuffer.wrap(beginning)).toString();
        boolean recorded = named || text.startsWith("{\"format\": \"nccl4j flight recorder");
        boolean mayBeADump = text.stripLeading().startsWith("{");
        if (!isProfile && !recorded && !mayBeADump) {
            if (beginning.length > 0 && (beginning[0] & 0xff) == PICKLE) {
                pickles.add(file + " is a pickle, which can run code when it is read: let torch write JSON, by"
                        + " torch._C._distributed_c10d._dump_nccl_trace_json() or, for Gloo, _dump_fr_trace_json(), or convert it:"
                        + " python3 -c 'import json, pickle, sys; print(json.dumps(pickle.load(sys.stdin.buffer)))' < "
                        + file.getFileName() + " > " + file.getFileName() + ".json");
            }
            return null;
        }
        if ((isProfile || recorded) && Files.size(file) > Limits.FILE_BYTES) {
            return "it has more than " + Limits.FILE_BYTES + " bytes";
        }
        try (BufferedReader content = open(file)) {
            if (isProfile) {
                profile.read(content);
            } else if (recorded) {
                records.add(RecorderFile.read(file, content));
            } else {
                records.addAll(TorchDump.read(file, content));
            }
        }
        return null;
    }

    /** Opens a text that a crash may have cut within a character. */
    private static BufferedReader open(Path file) throws IOException {
        return new BufferedReader(new InputStreamReader(
                Files.newInputStream(file),
                StandardCharsets.UTF_8
                        .newDecoder()
                        .onMalformedInput(CodingErrorAction.REPLACE)
                        .onUnmappableCharacter(CodingErrorAction.REPLACE)));
    }
}
