import { Aedes as Modern, type AedesOptions as ModernOptions } from 'embermq/aedes';

export * from 'embermq/aedes';

/** Options of Aedes 0.5x. */
export interface AedesOptions extends Omit<ModernOptions, 'mq' | 'persistence'> {
  /** A `mqemitter` that works in memory is ignored, with a warning; other modules are refused. */
  readonly mq?: unknown;
  /** A store of embermq. `aedes-persistence` is ignored, with a warning; other modules are refused. */
  readonly persistence?: unknown;
}

/** Aedes 1.x. */
export declare class Aedes extends Modern {
  /** Create a broker, which accepts clients after `listen`. */
  constructor(options?: AedesOptions);
  /** Create a broker and start it. */
  static createBroker(options?: AedesOptions): Promise<Aedes>;
}

/** A broker of Aedes 0.5x, which is ready at once. */
interface aedes extends Modern {}

declare const aedes: {
  /** Create a broker, which is ready at once. */
  (options?: AedesOptions): aedes;
  /** Create a broker, which is ready at once. */
  new (options?: AedesOptions): aedes;
};

export default aedes;

/** Create a broker, which is ready at once. */
export declare const createBroker: typeof aedes;
/** Create a broker, which is ready at once. */
export declare const Server: typeof aedes;
