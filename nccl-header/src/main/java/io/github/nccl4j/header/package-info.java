/**
 * Parses {@code nccl.h} for the build and for comparisons: {@link io.github.nccl4j.header.Header} is the parsed form,
 * {@link io.github.nccl4j.header.SymbolList} writes the build's list of functions, {@link
 * io.github.nccl4j.header.GeneratedJava} completes the generated Java, {@link io.github.nccl4j.header.GeneratedJni} makes the
 * generated C++ reproducible, and {@link io.github.nccl4j.header.HeaderCheck} compares headers of different releases.
 */
package io.github.nccl4j.header;
