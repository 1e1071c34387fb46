/**
 * Everything that {@code highlevel} does with communicators, compared with what it must give, on any engine: with JUnit on
 * the host engine in the build, and with {@code nccl4j conformance} on whatever a machine has.
 */
package io.github.nccl4j.tools.conformance;
