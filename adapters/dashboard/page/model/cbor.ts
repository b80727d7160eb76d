// CBOR (RFC 8949) as its diagnostic notation, one value a line. Packages that write this notation (`cbor2`) return nothing if the end of a payload is
// missing, and the page often has the beginning only. Nothing here is recursive.
import { Bytes, type Decoded, Fault, hexOf, MAX_DEPTH } from './decoded.ts';
import { utf8Of } from './payload.ts';

/** An array, a map, a tag or a string in parts whose content is being read. */
interface Open {
  readonly close: string;
  readonly isMap: boolean;
  /** The major type of the parts, if it is a string in parts. */
  readonly partsOf: number | undefined;
  /** Values that are missing; infinite until the break. */
  left: number;
  count: number;
}

/** The head of a value: its major type, and its argument, which is undefined for an indefinite length. */
interface Head {
  readonly major: number;
  readonly low: number;
  readonly argument: bigint | undefined;
}

const BREAK = 31;

/** The diagnostic notation of a value. */
export function cborText(bytes: Uint8Array): Decoded {
  const writer = new Writer(new Bytes(bytes));
  try {
    writer.write();
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { text: writer.text, fault: error };
  }
  return { text: writer.text };
}

class Writer {
  readonly #bytes: Bytes;
  readonly #open: Open[] = [];
  readonly #out: string[] = [];

  constructor(bytes: Bytes) {
    this.#bytes = bytes;
  }

  get text(): string {
    return this.#out.join('');
  }

  write(): void {
    do {
      const at = this.#bytes.at;
      const head = this.#head();
      const isBreak = head.major === 7 && head.low === BREAK;
      if (isBreak) this.#end(at);
      else {
        const { partsOf } = this.#open.at(-1) ?? {};
        if (partsOf !== undefined && (head.major !== partsOf || head.argument === undefined))
          throw new Fault('wrong', at);
        this.#begin();
        this.#value(head, at);
      }
      for (let top = this.#open.at(-1); top?.left === 0; top = this.#open.at(-1)) this.#close(top);
    } while (this.#open.length > 0);
    if (this.#bytes.at < this.#bytes.all.length) throw new Fault('rest', this.#bytes.at);
  }

  #head(): Head {
    const { at } = this.#bytes;
    const first = this.#bytes.byte();
    const [major, low] = [first >> 5, first & 31];
    if (low < 24) return { major, low, argument: BigInt(low) };
    if (low < 28) {
      let argument = 0n;
      for (const byte of this.#bytes.take(1 << (low - 24))) argument = (argument << 8n) | BigInt(byte);
      return { major, low, argument };
    }
    if (low < BREAK || major < 2 || major === 6) throw new Fault('wrong', at);
    return { major, low, argument: undefined };
  }

  /** Write what stands before a value. */
  #begin(): void {
    this.#bytes.count();
    const top = this.#open.at(-1);
    if (top === undefined) return;
    if (top.isMap && top.count % 2 === 1) this.#out.push(': ');
    else if (top.close !== ')') this.#out.push(top.count === 0 ? '' : ',', this.#line());
    else if (top.count > 0) this.#out.push(', ');
    top.count++;
    top.left--;
  }

  #line(): string {
    return `\n${'  '.repeat(this.#open.filter(({ close }) => close !== ')').length)}`;
  }

  #value({ major, low, argument }: Head, at: number): void {
    const bytes = this.#bytes;
    if (major === 0) this.#out.push(`${argument}`);
    else if (major === 1) this.#out.push(`${-1n - (argument as bigint)}`);
    else if (major === 7) this.#out.push(this.#simple(low, argument as bigint, at));
    else if (major === 6) this.#tag(argument as bigint);
    else if (argument === undefined)
      this.#enter(major === 4 ? '[_' : major === 5 ? '{_' : '(_ ', Infinity, major < 4 ? major : undefined);
    else if (major === 2) this.#out.push(hexOf(bytes.take(argument)));
    else if (major === 3) {
      const text = utf8Of(bytes.take(argument));
      if (text === undefined) throw new Fault('wrong', at);
      this.#out.push(JSON.stringify(text));
    } else this.#enter(major === 4 ? '[' : '{', Number(major === 5 ? 2n * argument : argument));
  }

  /** A tag and its value. Large integers are shown as integers. */
  #tag(tag: bigint): void {
    const { all, at } = this.#bytes;
    const length = all[at] - 0x40;
    if ((tag === 2n || tag === 3n) && length > 0 && length < 24) {
      this.#bytes.skip(1);
      const number = this.#bytes.take(length).reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
      this.#out.push(`${tag === 2n ? number : -1n - number}`);
    } else this.#enter(`${tag}(`, 1);
  }

  #enter(begin: string, left: number, partsOf?: number): void {
    if (this.#open.length >= MAX_DEPTH) throw new Fault('deep', this.#bytes.at);
    const close = { '[': ']', '{': '}' }[begin[0]] ?? ')';
    this.#out.push(begin);
    this.#open.push({ close, isMap: close === '}', partsOf, left, count: 0 });
  }

  /** The break at the end of an indefinite length. */
  #end(at: number): void {
    const top = this.#open.at(-1);
    if (top?.left !== Infinity || (top.isMap && top.count % 2 === 1)) throw new Fault('wrong', at);
    top.left = 0;
  }

  #close({ close, count }: Open): void {
    this.#open.pop();
    this.#out.push(count > 0 && close !== ')' ? this.#line() : '', close);
  }

  #simple(low: number, argument: bigint, at: number): string {
    const name = { 20: 'false', 21: 'true', 22: 'null', 23: 'undefined' }[low];
    if (name !== undefined) return name;
    const bits = new DataView(new ArrayBuffer(8));
    bits.setBigUint64(0, argument);
    if (low === 25) return floatText(halfOf(Number(argument)));
    if (low === 26) return floatText(bits.getFloat32(4));
    if (low === 27) return floatText(bits.getFloat64(0));
    if (low === 24 && argument < 32n) throw new Fault('wrong', at);
    return `simple(${argument})`;
  }
}

/** The number that the 16 bits of a half-precision float are. */
function halfOf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
}

/** A float with a point, which an integer does not have. */
function floatText(value: number): string {
  if (Object.is(value, -0)) return '-0.0';
  const text = `${value}`;
  return /[.NI]/.test(text) ? text : text.replace(/^(-?\d+)/, '$1.0');
}
