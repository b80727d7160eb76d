/**
 * Milliseconds of CPU that this process has used. For bounds on effort, such as "not quadratic": unlike time on a clock they hold on a busy
 * machine.
 */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
