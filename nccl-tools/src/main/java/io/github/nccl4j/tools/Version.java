package io.github.nccl4j.tools;

import picocli.CommandLine.IVersionProvider;

/** The version in the manifest of the jar. */
final class Version implements IVersionProvider {

    @Override
    public String[] getVersion() {
        return new String[] {"nccl4j " + number()};
    }

    static String number() {
        String version = Version.class.getPackage().getImplementationVersion();
        return version == null ? "(not packaged)" : version;
    }
}
