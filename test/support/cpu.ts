/**
 * Returns the milliseconds of CPU that this process has used. Bounds on effort such as "not quadratic" use it, because unlike elapsed time
 * it is independent of the load of the machine.
 */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
