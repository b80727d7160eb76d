// The package `aedes` for programs of both its generations. The export itself is that of 0.5x: a function, also a class, whose broker is ready at once.
// Its property `Aedes` is the class of 1.x.
'use strict';

const { Aedes: Modern, AuthErrorCode } = require('embermq/aedes');

/** The modules of Aedes that keep everything in memory, by option and name of their class: embermq does the same without them. */
const IN_MEMORY = { mq: 'MQEmitter', persistence: 'MemoryPersistence' };

/** Leaves out modules that keep everything in memory. All others stay, and the broker refuses them: without them, data would be lost silently. */
function withoutMemoryModules(options = {}) {
  const kept = { ...options };
  for (const [option, name] of Object.entries(IN_MEMORY)) {
    const given = kept[option];
    const isInMemory = [given, given?.asyncPersistence].some((value) => value?.constructor?.name === name);
    if (!isInMemory) continue;
    delete kept[option];
    process.emitWarning(`the option ${option} is ignored: embermq keeps the state in memory without it`, {
      code: 'EMBERMQ_AEDES_IGNORED'
    });
  }
  return kept;
}

/** The class of both generations. Clients have the details that `aedes-server-factory` reads from their connection, and this object as their broker. */
class Shared extends Modern {
  constructor(options) {
    super(withoutMemoryModules(options));
    const { handle } = this;
    this.handle = (stream, request) => {
      const client = handle(stream, request);
      client.connDetails = request ? request.connDetails : null;
      return Object.defineProperty(client, 'broker', { value: this });
    };
  }
}

/** Aedes 1.x. */
class Aedes extends Shared {
  static async createBroker(options) {
    const aedes = new Aedes(options);
    await aedes.listen();
    return aedes;
  }
}

/** Aedes 0.5x: it starts when it is created. Clients and messages that come before it has started wait. */
class ReadyAedes extends Shared {
  #isClosed = false;

  constructor(options) {
    super(options);
    this.listen().catch((error) => {
      if (!this.#isClosed) this.emit('error', error);
    });
  }

  get closed() {
    return this.#isClosed;
  }

  close(callback) {
    this.#isClosed = true;
    super.close(callback);
  }
}

function aedes(options) {
  return Reflect.construct(ReadyAedes, [options], new.target ?? ReadyAedes);
}

aedes.prototype = ReadyAedes.prototype;
module.exports = Object.assign(aedes, { createBroker: aedes, Server: aedes, default: aedes, Aedes, AuthErrorCode });
