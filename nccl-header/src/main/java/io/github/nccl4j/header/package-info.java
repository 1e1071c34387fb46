/**
 * Reads {@code nccl.h} as a program: {@link io.github.nccl4j.header.Header} is the parsed form,
 * {@link io.github.nccl4j.header.SymbolList} writes the build's list of functions from it,
 * {@link io.github.nccl4j.header.GeneratedJava} finishes the generated Java, and
 * {@link io.github.nccl4j.header.HeaderCheck} compares headers of different releases.
 */
package io.github.nccl4j.header;
