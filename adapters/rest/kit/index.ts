/**
 * The kit of REST interfaces. Separate from `adapters/rest`, which `serve` loads, because the package of schemas takes
 * 9 MB of memory.
 */

export { check, checkQuery, loadChecks, readQuery } from './checks.ts';
