import { isUtf8 } from 'node:buffer';
import { Worker } from 'node:worker_threads';
import { BrokerError } from '../../../lib/index.ts';

/** Maximum cost of a hash; checking one takes some seconds. */
const MAX_COST = 16;

/** Runs in a separate thread, because bcryptjs computes in JavaScript and would block the event loop. */
const CHECKER = `
  const { parentPort, workerData } = require('node:worker_threads');
  const loaded = import(workerData);
  parentPort.on('message', async ({ number, password, hash }) => {
    try {
      const { compareSync } = (await loaded).default;
      parentPort.postMessage({ number, isRight: compareSync(password, hash) });
    } catch (error) {
      parentPort.postMessage({ number, fault: String(error) });
    }
  });
`;

/** An answer of the thread. */
interface Answer {
  readonly number: number;
  readonly isRight?: boolean;
  readonly fault?: string;
}

/** A check in progress. */
interface Pending {
  readonly resolve: (isRight: boolean) => void;
  readonly reject: (error: Error) => void;
}

/** Checks bcrypt hashes with the package bcryptjs, in a thread that is started by the first check. */
export class BcryptChecker {
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | undefined = undefined;
  #last = 0;
  #isClosed = false;

  /** Make sure that the package is installed. @throws BrokerError PACKAGE_MISSING */
  async load(): Promise<void> {
    try {
      await import('bcryptjs');
    } catch (cause) {
      const text = 'bcrypt hashes need the package bcryptjs: npm install bcryptjs';
      throw new BrokerError('PACKAGE_MISSING', text, { cause });
    }
  }

  /** Check a password. bcrypt itself takes only its first 72 bytes into account. @throws BrokerError SOURCE_CLOSED, PASSWORD_HASH_INVALID */
  async check(password: Buffer, hash: string): Promise<boolean> {
    if (this.#isClosed) throw new BrokerError('SOURCE_CLOSED', 'the source has been closed');
    const worker = (this.#worker ??= this.#start());
    const number = ++this.#last;
    const isRight = await new Promise<boolean>((resolve, reject) => {
      this.#pending.set(number, { resolve, reject });
      worker.ref();
      worker.postMessage({ number, password: password.toString(), hash });
    });
    return isRight && isUtf8(password); // invalid bytes have been replaced in the string
  }

  /** End the thread. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#worker?.terminate();
  }

  #start(): Worker {
    // in an app that a bundler has converted to CommonJS, import.meta is empty, and the package is resolved from the
    // working directory
    const worker = new Worker(CHECKER, { eval: true, workerData: import.meta.resolve?.('bcryptjs') ?? 'bcryptjs' });
    worker.on('message', ({ number, isRight, fault }: Answer) => {
      const pending = this.#pending.get(number);
      this.#pending.delete(number);
      if (this.#pending.size === 0) worker.unref();
      if (fault === undefined) pending?.resolve(isRight === true);
      else pending?.reject(new BrokerError('PASSWORD_HASH_INVALID', `the bcrypt hash cannot be checked: ${fault}`));
    });
    let failure: unknown;
    worker.on('error', (error) => {
      failure = error;
    });
    worker.on('exit', () => {
      this.#worker = undefined;
      const error = new Error('the thread that checks bcrypt hashes has ended', { cause: failure });
      for (const { reject } of this.#pending.values()) reject(error);
      this.#pending.clear();
    });
    return worker;
  }
}

/** Check the kind and the cost of a bcrypt hash. @throws Error */
export function checkBcryptHash(hash: string): void {
  if (hash.startsWith('$2x$'))
    throw new Error('bcrypt hashes of the kind $2x$ were made by a faulty program and are not checked');
  const cost = Number(hash.slice(4, 6));
  if (cost < 4 || cost > MAX_COST)
    throw new Error(`the cost of the bcrypt hash is ${cost}; costs from 4 to ${MAX_COST} are checked`);
}
