/**
 * Code of several commands: choice of the engine, sizes, test data and their checks, the table of nccl-tests, and files
 * of a run. Not an API.
 */
package io.github.nccl4j.tools.support;
