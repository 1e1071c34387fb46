package io.github.nccl4j.tools.analyze;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.Reader;
import java.nio.ByteBuffer;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * The records in a folder: files of nccl4j's recorder and profiler, and dumps of torch.
 *
 * @param records the records, in the order of the names of their files
 * @param profile the files of the profiler, which may be none
 * @param unreadable a message for each file that should be a record and can't be read
 */
record RecordFolder(List<RankRecord> records, Profile profile, List<String> unreadable) {
    private static final int BEGINNING = 4096;

    /** Protocol 2 and later: the first byte of a pickle. */
    private static final int PICKLE = 0x80;

    /**
     * Reads all files of a folder, and ignores those of other programs.
     *
     * @throws NoRecordsException if the folder has no record, or has a dump that is a pickle
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
        for (Path file : files) {
            if (Profile.isProfile(file.getFileName().toString())) {
                readProfile(file, profile, unreadable);
                continue;
            }
            try (InputStream in = Files.newInputStream(file)) {
                byte[] beginning = in.readNBytes(BEGINNING);
                read(file, beginning, records);
            } catch (DamagedFile damaged) {
                unreadable.add(damaged.getMessage());
            }
        }
        if (records.isEmpty() && unreadable.isEmpty()) {
            throw new NoRecordsException(
                    folder + " has no records: set -Dnccl4j.recorder.dump or NCCL4J_RECORDER_DUMP to a folder, or"
                            + " call FlightRecorder.dumpAll on each rank");
        }
        return new RecordFolder(List.copyOf(records), profile, List.copyOf(unreadable));
    }

    private static void readProfile(Path file, Profile profile, List<String> unreadable) {
        try (BufferedReader content = open(file)) {
            profile.read(file, content);
        } catch (IOException damaged) {
            unreadable.add(damaged.getMessage());
        }
    }

    /** A file that should be a record, but has none. */
    private static final class DamagedFile extends IOException {
        private static final long serialVersionUID = 1;

        DamagedFile(IOException cause) {
            super(cause.getMessage(), cause);
        }
    }

    private static void read(Path file, byte[] beginning, List<RankRecord> records) throws IOException {
        String text =
                StandardCharsets.ISO_8859_1.decode(ByteBuffer.wrap(beginning)).toString();
        boolean named = file.getFileName().toString().matches("nccl4j-\\d+-.+-rank\\d+\\.json");
        if (named || text.startsWith("{\"format\": \"nccl4j flight recorder")) {
            try (Reader content = open(file)) {
                records.add(RecorderFile.read(file, content));
            } catch (IOException damaged) {
                throw new DamagedFile(damaged);
            }
        } else if (beginning.length > 0 && (beginning[0] & 0xff) == PICKLE) {
            throw new NoRecordsException(
                    file + " is a pickle, which can run code when it is read: let torch write JSON, by"
                            + " torch._C._distributed_c10d._dump_nccl_trace_json() or, for Gloo, _dump_fr_trace_json(), or convert it:"
                            + " python3 -c 'import json, pickle, sys; print(json.dumps(pickle.load(sys.stdin.buffer)))' < "
                            + file.getFileName() + " > " + file.getFileName() + ".json");
        } else if (text.stripLeading().startsWith("{")) {
            String whole = Files.readString(file);
            if (whole.contains("\"pg_config\"") || whole.contains("\"entries\"")) {
                try (Reader content = open(file)) {
                    records.addAll(TorchDump.read(file, content));
                } catch (IOException damaged) {
                    throw new DamagedFile(damaged);
                }
            }
        }
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
