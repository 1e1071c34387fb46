/**
 * Tests of everything that {@code highlevel} does with communicators, on any engine: with JUnit on the host engine in
 * the build, and with {@code nccl4j conformance} on the engine of a machine.
 */
package io.github.nccl4j.tools.conformance;
