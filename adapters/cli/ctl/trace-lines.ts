import type { ProtocolVersion } from '../../../lib/index.ts';

/** A line of a trace, as the management interface returns it. */
interface TraceLine {
  readonly record: Readonly<Record<string, unknown>>;
}

/** Decode the packets in lines of a trace that the broker has refused, and therefore written in hexadecimal. */
export async function* decoded<L extends TraceLine>(lines: AsyncIterable<L> | Iterable<L>): AsyncGenerator<L, void> {
  for await (const line of lines) {
    const { hex, protocolVersion, ...record } = line.record;
    const isFrame = typeof hex === 'string' && typeof protocolVersion === 'number';
    const fields = isFrame ? await fieldsOf(hex, protocolVersion as ProtocolVersion) : undefined;
    yield fields === undefined ? line : { ...line, record: { ...record, ...fields } };
  }
}

/** @returns undefined if the bytes cannot be read */
async function fieldsOf(hex: string, protocolVersion: ProtocolVersion): Promise<object | undefined> {
  const { decodeFrames, describePacket } = await import('../../../lib/decoder.ts');
  const [frame] = decodeFrames(Buffer.from(hex, 'hex'), protocolVersion);
  return frame?.packet === undefined ? undefined : describePacket(frame.packet);
}
