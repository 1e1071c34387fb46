/**
 * What several commands use: choice of the engine, sizes, test data and their checks, the table of nccl-tests, and what a run
 * leaves behind. Not an API.
 */
package io.github.nccl4j.tools.support;
