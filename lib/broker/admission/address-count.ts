/** Counts the connections of each address, for `maxConnectionsPerAddress`. */
export class AddressCount<C extends object> {
  #most = 0;
  readonly #counts = new Map<string, number>();
  /** The addresses of the connections that are counted. */
  readonly #addresses = new Map<C, string>();

  /**
   * Set the limit.
   * @param most maximum number of connections of one address; 0: unlimited, nothing is counted
   * @param present the connections that currently count
   */
  limit(most: number, present: Iterable<readonly [connection: C, address: string | undefined]>): void {
    this.#most = most;
    this.#counts.clear();
    this.#addresses.clear();
    for (const [connection, address] of present) this.add(connection, address);
  }

  /**
   * The reason why an address may not have another connection. @param address undefined: it is unknown, for example that of a Unix socket
   */
  refusal(address: string | undefined): 'max_connections_per_address' | undefined {
    if (this.#most === 0 || address === undefined) return undefined;
    return (this.#counts.get(address) ?? 0) >= this.#most ? 'max_connections_per_address' : undefined;
  }

  add(connection: C, address: string | undefined): void {
    if (this.#most === 0 || address === undefined) return;
    this.#addresses.set(connection, address);
    this.#counts.set(address, (this.#counts.get(address) ?? 0) + 1);
  }

  delete(connection: C): void {
    const address = this.#addresses.get(connection);
    if (address === undefined) return;
    this.#addresses.delete(connection);
    const left = (this.#counts.get(address) ?? 0) - 1;
    if (left > 0) this.#counts.set(address, left);
    else this.#counts.delete(address);
  }
}
