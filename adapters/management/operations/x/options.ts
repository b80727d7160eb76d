import type { Static } from 'typebox';
import { InvalidInput, type Setting } from '../../../../lib/index.ts';
import { Fault } from '../../../rest/index.ts';
import { anyOf, flag, listOf, number, objectOf, oneOf, optional, text } from '../../../rest/kit/index.ts';
import { pageOf } from '../../listing.ts';
import { type Context, type Operation, operation } from '../../operation.ts';
import { shownValue } from '../../setting-values.ts';

const SOURCES = ['default', 'option', 'override'] as const;
const VALUE = anyOf([text(), number(), flag()]);
const OPTION = objectOf({
  key: text('Documented name: "zone.external.max_inflight"'),
  name: text('Name in camelCase'),
  zone: optional(text('Zone; absent: the broker, or all zones without their own value')),
  value: anyOf(VALUE.anyOf, 'Present value, as it can be sent back; "": none'),
  default: anyOf(VALUE.anyOf, 'Value without options and overrides'),
  kind: text('Kind of the value: "integer", "duration", "size", ...'),
  choices: optional(listOf(text(), 'The permitted values of the kind "choice"')),
  source: oneOf([...SOURCES], '"option": given to the broker; "override": set at run time'),
  origin: optional(text('The source of the value in the app: "--max-inflight"')),
  takes_effect: oneOf(['now', 'next connection', 'restart'], 'When a change takes effect'),
  about: text('The purpose of the option')
});

const shownIn =
  ({ optionSource }: Context) =>
  (setting: Setting): Static<typeof OPTION> => {
    const { key, name, zone, kind, unit, choices, source, takesEffect, about } = setting;
    const origin = source === 'option' ? optionSource?.(name, zone || undefined) : undefined;
    return {
      key,
      name,
      ...(zone && { zone }),
      value: shownValue(setting),
      default: shownValue({ value: setting.default, kind, unit }),
      kind,
      ...(choices && { choices: [...choices] }),
      source,
      ...(origin !== undefined && { origin }),
      takes_effect: takesEffect,
      about
    };
  };

/** Return the fault for an option that does not exist: the path names it, so the object is unknown. */
function unknownOption(error: unknown): unknown {
  const isUnknown = error instanceof InvalidInput && /^(OPTION|ZONE)_UNKNOWN$/.test(error.code);
  return isUnknown ? new Fault('unknownRecord', error.message, 'not_found') : error;
}

/** The options of the broker, the sources of their values, and the values set at run time. */
export const OPTIONS: readonly Operation[] = [
  operation({
    name: 'list_options',
    method: 'GET',
    path: '/x/options',
    ctl: { 'config list --source': 'key value source origin takes_effect' },
    descr: 'List the options of the broker with their sources, by key',
    paged: 100,
    hasCursor: true,
    query: objectOf({
      source: optional(oneOf([...SOURCES], 'Only options whose value is from there'))
    }),
    data: listOf(OPTION),
    example: { query: { _limit: 1 } },
    run: (context, { query: { source } }) => {
      const all = context.broker.configuration.list();
      const wanted = source === undefined ? all : all.filter((one) => one.source === source);
      wanted.sort((a, b) => (a.key < b.key ? -1 : 1));
      return pageOf(wanted, context.page, shownIn(context), { keyOf: ({ key }) => key });
    }
  }),
  operation({
    name: 'lookup_option',
    method: 'GET',
    path: '/x/options/:key',
    ctl: 'config get KEY',
    descr: 'Look up an option by any spelling of its name',
    example: { params: { key: 'sysInterval' } },
    data: OPTION,
    run: (context, { params: { key } }) => {
      try {
        return shownIn(context)(context.broker.configuration.get(key));
      } catch (error) {
        throw unknownOption(error);
      }
    }
  }),
  operation({
    name: 'reset_option',
    method: 'DELETE',
    path: '/x/options/:key',
    ctl: 'config reset KEY',
    descr: 'Remove what was set for an option at run time',
    example: { params: { key: 'broker.sys_interval' } },
    run: async ({ broker: { configuration } }, { params: { key } }) => {
      const hasChanged = await configuration.reset(key).catch((error: unknown) => {
        throw unknownOption(error);
      });
      if (!hasChanged) throw new Fault('unknownRecord', `${key} was not set at run time`, 'not_found');
    }
  })
];
