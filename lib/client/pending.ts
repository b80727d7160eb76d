/** The promise of an operation that waits for the server. */
export interface Pending<T> {
  resolve(value: T): void;
  reject(error: Error): void;
}
