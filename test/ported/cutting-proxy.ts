// Connections between MQTT clients and a broker that end at chosen packets.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** Time from a cut until both sides notice it. Until then everything is lost, as in a network that has failed. */
const NOTICED_AFTER_MS = 30;

/** Types of control packets, as in the fixed header. */
const TYPES = { publish: 3, puback: 4, pubrec: 5, pubrel: 6, pubcomp: 7 } as const;

/** The packet at which a connection ends. */
interface Cut {
  readonly from: 'client' | 'broker';
  readonly type: keyof typeof TYPES;
  /** 1 is the first packet of this type on the connection. */
  readonly nth: number;
  /** True if the receiver does not get the packet. */
  readonly isLost: boolean;
}

/** The packets of one direction of a QoS flow. */
const FLOWS: Readonly<Record<1 | 2, readonly (readonly [isSender: boolean, keyof typeof TYPES])[]>> = {
  1: [
    [true, 'publish'],
    [false, 'puback']
  ],
  2: [
    [true, 'publish'],
    [false, 'pubrec'],
    [true, 'pubrel'],
    [false, 'pubcomp']
  ]
};

/** Returns cuts at each packet of a QoS flow, before and after it. @param sender the side that sends the PUBLISH */
export function cutsOf(qos: 1 | 2, sender: Cut['from']): Cut[] {
  const receiver = sender === 'client' ? 'broker' : 'client';
  return FLOWS[qos].flatMap(([isSender, type]) =>
    [true, false].flatMap((isLost) => [1, 5].map((nth) => ({ from: isSender ? sender : receiver, type, nth, isLost })))
  );
}

/** Forwards connections to a port. Each connection ends at the next of the cuts; when there are no more, connections stay. */
export class CuttingProxy implements AsyncDisposable {
  readonly #target: () => number;
  readonly #cuts: Cut[];
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  /** @param target returns the port of the broker */
  constructor(target: () => number, cuts: readonly Cut[] = []) {
    this.#target = target;
    this.#cuts = [...cuts];
    this.#server = createServer((client) => this.#forward(client));
  }

  async start(): Promise<this> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    return this;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Number of cuts that have not been made. */
  get left(): number {
    return this.#cuts.length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #forward(client: Socket): void {
    const broker = connect(this.#target(), '127.0.0.1');
    const cut = this.#cuts[0];
    let passed = 0;
    let isOver = false;
    const end = () => {
      client.destroy();
      broker.destroy();
    };
    const relay = (from: Cut['from'], source: Socket, to: Socket) => {
      this.#sockets.add(source);
      source.on('error', end);
      source.on('close', () => {
        this.#sockets.delete(source);
        end();
      });
      let rest = Buffer.alloc(0);
      source.on('data', (chunk: Buffer) => {
        rest = Buffer.concat([rest, chunk]);
        for (let size = sizeOf(rest); size !== undefined && !isOver; size = sizeOf(rest)) {
          const packet = rest.subarray(0, size);
          rest = rest.subarray(size);
          isOver = cut?.from === from && packet[0] >> 4 === TYPES[cut.type] && ++passed === cut.nth;
          if (!isOver || cut?.isLost === false) to.write(packet);
          if (!isOver) continue;
          this.#cuts.splice(this.#cuts.indexOf(cut), 1);
          setTimeout(end, NOTICED_AFTER_MS);
        }
      });
    };
    relay('client', client, broker);
    relay('broker', broker, client);
  }
}

/** Returns the size of the first packet, or undefined if it is not complete. */
function sizeOf(bytes: Buffer): number | undefined {
  let length = 0;
  for (let at = 1; at < bytes.length && at < 5; at++) {
    length += (bytes[at] & 0x7f) * 128 ** (at - 1);
    if (bytes[at] < 0x80) return bytes.length >= at + 1 + length ? at + 1 + length : undefined;
  }
  return undefined;
}
