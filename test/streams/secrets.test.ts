import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { FieldTable } from '../../lib/base/fields.ts';
import { hasSecrets, hideSecrets, keepSecrets as keep } from '../../lib/streams/rule/secrets.ts';
import type { Properties } from '../../lib/streams/types.ts';

const TABLE: FieldTable = {
  key: { type: 'string', about: 'A key.', isSecret: true },
  tokenCount: { type: 'number', about: 'No secret, whatever its name is.' }
};
const propertiesOf = (type: string) => (type === 'known' ? TABLE : undefined);
const keepSecrets = <T>(given: T, present: Parameters<typeof keep>[1]) => keep(given, present, propertiesOf);

/** Properties, and the form in which they are shown. */
const SHOWN: readonly (readonly [given: Properties, shown: Properties])[] = [
  [
    { KEY: 'k', tokenCount: 3 },
    { KEY: '******', tokenCount: 3 }
  ],
  [{ headers: { Authorization: 'a', accept: 'b' } }, { headers: { Authorization: '******', accept: 'b' } }],
  [{ a: { b: { c: { password: 'p', d: 1 } } } }, { a: { b: { c: { password: '******', d: 1 } } } }],
  [
    { servers: [{ token: 't', port: 1 }, [{ secret: 's' }]] },
    { servers: [{ token: '******', port: 1 }, [{ secret: '******' }]] }
  ],
  [{ passwords: ['a', 'b'] }, { passwords: '******' }],
  [{ server: 'tcp://u:p@host:1883' }, { server: 'tcp://******@host:1883' }],
  [{ server: 'tcp://token@host/a@b?c=d@e' }, { server: 'tcp://******@host/a@b?c=******' }],
  [
    { url: 'http://host/a?token=t&b=&token=u;c#d=e' },
    { url: 'http://host/a?token=******&b=&token=******;******#d=******' }
  ],
  [{ dataTemplate: '{"a":"https://h/?k=v","b":"x?y=z"}' }, { dataTemplate: '{"a":"https://h/?k=******","b":"x?y=z"}' }],
  [
    { headers: '{"Authorization": "Bearer \\"x\\"", "x-api-key":7, "accept":"b"}' },
    { headers: '{"Authorization": "******", "x-api-key":******, "accept":"b"}' }
  ],
  [
    { headers: '{"a":"{{.a}}","Cookie":"b={{.b}}","cookie":"c"' },
    { headers: '{"a":"{{.a}}","Cookie":"******","cookie":"******"' }
  ],
  [
    { dataTemplate: '{"token":"{{.token}}","url":"http://u:p@h"}' },
    { dataTemplate: '{"token":"{{.token}}","url":"http://******@h"}' }
  ],
  [
    { body: '{"password":"http://h/?a=b","at":"http://h/?a=b"}' },
    { body: '{"password":"******","at":"http://h/?a=******"}' }
  ],
  [{ url: 'http://u:p@w@host' }, { url: 'http://******@host' }],
  [
    { brokers: 'kafka://a:b@h1,kafka://h2,kafka://c:d@h3' },
    { brokers: 'kafka://******@h1,kafka://h2,kafka://******@h3' }
  ],
  [{ urls: 'http://h/a,http://u:p@h2/b?c=d' }, { urls: 'http://h/a,http://******@h2/b?c=******' }],
  [{ server: 'tcp://h1,tcp://u:p@h2,ws://v:q@h3:1' }, { server: 'tcp://h1,tcp://******@h2,ws://******@h3:1' }],
  [{ urls: ['http://u:p@a/', 'http://b/'] }, { urls: ['http://******@a/', 'http://b/'] }],
  [
    { to: 'someone@host', text: 'see http://host/a@b' },
    { to: 'someone@host', text: 'see http://host/a@b' }
  ]
];

describe('The secrets of actions', () => {
  it('hides secrets at every depth, in arrays, and in the user information and queries of URLs', () => {
    for (const [given, shown] of SHOWN)
      assert.deepEqual(hideSecrets([{ known: given }], propertiesOf), [{ known: shown }]);
  });

  it('keeps the current secrets where a change contains the placeholder', () => {
    for (const [given, shown] of SHOWN)
      assert.deepEqual(keepSecrets([{ known: shown }], [{ known: given }]), [{ known: given }]);
  });

  it('matches secrets of a query by name, even if other values are removed', () => {
    const present = [{ known: { url: 'http://u:p@host/a?x=1&key=k&key=l' } }];
    const change = [{ known: { url: 'https://******@host/b?key=******&key=new&y=2' } }];
    assert.deepEqual(keepSecrets(change, present), [{ known: { url: 'https://u:p@host/b?key=k&key=new&y=2' } }]);
  });

  it('keeps secrets when other values change', () => {
    const present = [{ known: { server: 'tcp://u:p@host', list: [{ token: 't' }, { token: 'u' }] } }];
    const change = [{ known: { server: 'ssl://******@host', list: [{ token: '******', a: 1 }, { token: 'v' }] } }];
    assert.deepEqual(keepSecrets(change, present), [
      { known: { server: 'ssl://u:p@host', list: [{ token: 't', a: 1 }, { token: 'v' }] } }
    ]);
  });

  it('matches actions without functions, which are not shown', () => {
    const call = () => undefined;
    const kept = keepSecrets([call, { known: { key: '******' } }], [{ known: { key: 'k' } }]);
    assert.deepEqual(kept, [call, { known: { key: 'k' } }]);
  });

  const [one, two] = [
    { url: 'http://one', topic: 't', password: '1' },
    { url: 'http://two', topic: 't', password: '2' }
  ];
  const masked = { password: '******' };

  it('gives an element of a list the secrets of the element with the same values, whatever its position is', () => {
    const present = [{ known: { servers: [one, two], tokens: ['a', 'b'], urls: ['http://u:p@a/', 'http://u:q@b/'] } }];
    for (const [servers, kept] of [
      [[{ ...two, ...masked }], [two]],
      [
        [
          { ...two, ...masked },
          { ...one, ...masked }
        ],
        [two, one]
      ],
      [
        [
          { url: 'http://new', topic: 't', password: '3' },
          { ...two, ...masked }
        ],
        [{ url: 'http://new', topic: 't', password: '3' }, two]
      ],
      [[{ ...two, topic: 'other', ...masked }], [{ ...two, topic: 'other' }]]
    ])
      assert.deepEqual(keepSecrets([{ known: { servers } }], present), [{ known: { servers: kept } }]);
    assert.deepEqual(keepSecrets([{ known: { urls: ['http://******@b/'] } }], present), [
      { known: { urls: ['http://u:q@b/'] } }
    ]);
    assert.deepEqual(keepSecrets([{ known: { tokens: ['******', '******'] } }], present), [
      { known: { tokens: ['a', 'b'] } }
    ]);
  });

  it('gives an action the secrets of the action with the same values or server, whatever its position is', () => {
    const present: Readonly<Record<string, Properties>>[] = [
      { known: one },
      { known: two },
      { other: { password: '3' } }
    ];
    const change = [{ other: masked }, { known: { ...two, topic: 'new', ...masked } }];
    assert.deepEqual(keepSecrets(change, present), [{ other: { password: '3' } }, { known: { ...two, topic: 'new' } }]);
  });

  it('refuses to keep a secret for another server, or without encryption', () => {
    for (const [field, present, given] of [
      ['url', 'http://one', 'http://moved'],
      ['url', 'http://good.example/', 'http://evil.example\\@good.example/'],
      ['url', 'http://good.example/', 'http://evil.example\t@good.example/'],
      ['url', 'https://good.example/', 'http://good.example/'],
      ['server', 'tls://good.example', 'tcp://good.example'],
      ['server', 'ssl://good.example:8884', 'ws://good.example:8884'],
      ['tls', true, false],
      ['tls', true, undefined],
      ['brokers', 'kafka://a,kafka://b', 'kafka://a,kafka://evil'],
      ['brokers', ['a:1', 'b:1'], ['a:1']],
      ['servers', [{ host: 'a', password: 'p' }], [{ host: 'b', ...masked }]]
    ] as const)
      assert.throws(
        () => keepSecrets([{ known: { [field]: given, ...masked } }], [{ known: { [field]: present, password: 'p' } }]),
        { code: 'PROPERTY_INVALID', message: /cannot be kept for another server, or without TLS: send/ },
        `${given}`
      );
    const change = [{ known: { url: 'https://one/other', ...masked } }];
    assert.deepEqual(keepSecrets(change, [{ known: one }]), [{ known: { url: 'https://one/other', password: '1' } }]);
  });

  it('refuses a placeholder that could stand for several secrets, or for that of another server', () => {
    const several = 'could stand for the secrets of several elements; send the secret itself';
    const none = 'stands for the current value, but there is none';
    const alike = { ...one, password: 'other' };
    const changed = { url: 'http://one', qos: 1, ...masked };
    for (const [change, before, message] of [
      [
        [{ known: { servers: [{ url: 'http://three', ...masked }] } }],
        [{ known: { servers: [one, two] } }],
        `known sink: property servers, field 0, field password: ****** ${none}`
      ],
      [
        [{ known: { servers: [changed] } }],
        [{ known: { servers: [one, alike] } }],
        `known sink: property servers, field 0: ****** ${several}`
      ],
      [
        [{ known: { tokens: ['******'] } }],
        [{ known: { tokens: ['a', 'b'] } }],
        `known sink: property tokens, field 0: ****** ${several}`
      ],
      [
        [{ known: { url: 'http://three', ...masked } }],
        [{ known: one }, { known: two }],
        `known sink: property password: ****** ${none}`
      ],
      [[{ known: changed }], [{ known: one }, { known: alike }], `known sink: ****** ${several}`]
    ] as const)
      assert.throws(() => keepSecrets(change, before), { code: 'PROPERTY_INVALID', message });
  });

  it('examines each element of a list as often, whatever the length of the list is', () => {
    const examined = (length: number, at: number) => {
      let count = 0;
      const element = (host: number, password: string) => {
        const get = () => {
          count++;
          return `h${host}`;
        };
        return Object.defineProperty({ n: host, password }, 'host', { enumerable: true, get });
      };
      const present = Array.from({ length }, (_, host) => element(host, 's'));
      const change = Array.from({ length }, (_, host) => element(host + at, '******'));
      const message = /there is none$/;
      assert.throws(() => keepSecrets([{ known: { all: change } }], [{ known: { all: present } }]), { message });
      return count / length;
    };
    const [few, many] = [examined(10, 1), examined(500, 1)];
    assert.ok(many < 2 * few, `${many} times in a list of 500 elements, ${few} times in one of 10`);
    assert.ok(examined(500, 500) < 2 * few);
  });

  it('matches names without regard to case, as it hides them', () => {
    const present = [{ known: { KEY: 'k', headers: { Authorization: 'a' } } }];
    const change = [{ known: { key: '******', headers: { authorization: '******' } } }];
    assert.deepEqual(keepSecrets(change, present), [{ known: { key: 'k', headers: { authorization: 'a' } } }]);
  });

  it('hides the secrets in lists that a table describes', () => {
    const fields: FieldTable = { pin: { type: 'string', about: 'A pin.', isSecret: true } };
    const table: FieldTable = {
      doors: { type: 'array', about: 'Doors.', items: { type: 'object', about: 'A door.', fields } },
      pins: { type: 'array', about: 'Pins.', items: { type: 'string', about: 'A pin.', isSecret: true } }
    };
    assert.deepEqual(
      hideSecrets([{ known: { doors: [{ pin: '1' }], pins: ['2'] } }], () => table),
      [{ known: { doors: [{ pin: '******' }], pins: ['******'] } }]
    );
  });

  it('keeps every current value for the placeholder, whether its type is registered or not', () => {
    for (const type of ['known', 'other']) {
      const given = (topic: string, key: string | null) => [{ [type]: { topic, key } }];
      assert.deepEqual(keepSecrets(given('******', '******'), given('t', 'k')), given('t', 'k'));
      assert.deepEqual(keepSecrets(given('new', '******'), given('t', null)), given('new', null));
    }
    const list = (b: string[]) => [{ known: { a: { b } } }];
    assert.deepEqual(keepSecrets(list(['y', '******']), list(['x', 'y'])), list(['y', 'x']));
  });

  it('takes the placeholder as a value if it is not a secret, and has no current value or several', () => {
    const change = [{ known: { topic: '******', a: { b: ['******'] } } }];
    for (const present of [{ c: 1 }, { c: 1, a: { b: ['x', 'y'] } }])
      assert.deepEqual(keepSecrets(change, [{ known: present }]), change);
  });

  it('refuses a placeholder without a current secret, and names its position', () => {
    for (const [given, message] of [
      [{ key: '******' }, 'known sink: property key: ****** stands for the current value, but there is none'],
      [
        { a: { password: '******' } },
        'known sink: property a, field password: ****** stands for the current value, but there is none'
      ],
      [
        { a: [{ token: '******' }] },
        'known sink: property a, field 0, field token: ****** stands for the current value, but there is none'
      ],
      [
        { url: 'http://host?a=******' },
        'known sink: property url: ****** stands for the current value, but there is none'
      ],
      [
        { url: 'http://******@host' },
        'known sink: property url: ****** stands for the current value, but there is none'
      ]
    ] as const)
      assert.throws(() => keepSecrets([{ known: given }], [{ known: { url: 'http://host' } }]), {
        code: 'PROPERTY_INVALID',
        message
      });
  });

  it('finds secrets by their names in properties that no table describes', () => {
    assert.equal(hasSecrets({ connectionSelector: 'a', url: 'http://host' }, undefined), false);
    for (const properties of [{ password: 'p' }, { url: 'http://u:p@host' }])
      assert.equal(hasSecrets(properties, undefined), true);
  });

  it('searches only as many levels for secrets as properties may have', () => {
    const cyclic: Record<string, unknown> = {};
    cyclic.self = cyclic;
    assert.throws(() => keepSecrets([{ known: cyclic }], []), {
      code: 'PROPERTY_INVALID',
      message: 'known sink: property self has more than 64 levels of objects and arrays'
    });
  });

  it('leaves instances of classes unchanged', () => {
    const at = new Date(0);
    assert.deepEqual(hideSecrets([{ known: { at } }], propertiesOf), [{ known: { at } }]);
    assert.equal((keepSecrets([{ known: { at } }], []) as { known: { at: Date } }[])[0].known.at, at);
  });
});
