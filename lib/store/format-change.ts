import { writeFormat } from './commits.ts';
import type { Durable } from './durable.ts';
import { DEFINITIONS_VERSION } from './keys.ts';
import type { Draft } from './record.ts';

/** The format record of an open store, which is written when the version of the definitions changes. */
export class FormatChange implements Durable {
  isDirty = false;
  readonly madeAt: number;
  /** The version of the definitions in the store, see `DEFINITIONS_VERSION`. */
  definitions: number;

  constructor(madeAt: number, definitions: number) {
    this.madeAt = madeAt;
    this.definitions = definitions;
  }

  write(draft: Draft): void {
    writeFormat(draft, this.madeAt, DEFINITIONS_VERSION);
  }

  committed(): void {
    this.definitions = DEFINITIONS_VERSION;
  }

  commitFailed(): void {} // `write` writes it again
}
