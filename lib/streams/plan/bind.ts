// Binding finds out what each name means and checks everything that does not need a row; planning comes afterwards
// and cannot fail for a name. The fields are bound first, because the other clauses use their aliases, and in an
// order that lets fields use the aliases of others. Lookup tables are joined behind all streams and scanned tables,
// so nothing that is evaluated before may read them. Texts of errors are those of the documented product.

import { childrenOf } from '../../sql/inspect.ts';
import { SqlError } from '../../sql/sql-error.ts';
import type { Call, Expression, Selected, Star, StreamSelect, Window } from '../../sql/tree.ts';
import type {
  BoundExpression,
  BoundField,
  BoundJoin,
  BoundPredicate,
  BoundSelect,
  BoundWindow
} from '../expressions/bound.ts';
import type { ExpandingFunction } from '../function.ts';
import { bindingOrder } from './alias-order.ts';
import { type BindContext, Bindings, type Clause } from './bindings.ts';
import { argumentNames, fieldNames } from './names.ts';
import { bindJoin, bindWhere } from './predicates.ts';
import { Sources } from './sources.ts';
import { hasCall } from './walk.ts';

const SELECT: Clause = {};
const GROUP_BY: Clause = { noAggregates: 'Not allowed to call aggregate functions in GROUP BY clause.' };
const WINDOW: Clause = { noAggregates: 'Not allowed to call aggregate functions in a window.' };
/** Analytic calls over joined rows are computed after the join, which follows the window. */
const WINDOW_OF_JOIN: Clause = {
  ...WINDOW,
  noAnalytics: 'Not allowed to call analytic functions in a window over several streams.'
};

/**
 * Resolve the names of a statement, and check everything that can be checked without a row.
 * @throws SqlError SQL_INVALID; NotFound STREAM_NOT_FOUND
 */
export function bind(select: StreamSelect, context: BindContext): BoundSelect {
  return new Binder(select, context).bound();
}

class Binder {
  readonly #select: StreamSelect;
  readonly #text: string;
  readonly #functions: BindContext['functions'];
  readonly #sources: Sources;
  readonly #bindings: Bindings;

  constructor(select: StreamSelect, context: BindContext) {
    this.#select = select;
    this.#text = context.text;
    this.#functions = context.functions;
    this.#sources = new Sources(select, context.text, context.catalogue);
    this.#bindings = new Bindings(context, this.#sources);
  }

  bound(): BoundSelect {
    this.#checkSources();
    const bindings = this.#bindings;
    const {
      groupBy: groupNodes,
      having: havingNode,
      orderBy: orderNodes,
      joins: joinNodes,
      where,
      limit
    } = this.#select;
    // fields come first, because the other clauses use their aliases
    const fields = this.#fields();
    const joins = joinNodes.map((join, index) => bindJoin(join, index, bindings));
    for (const join of joins) {
      this.#checkLookup(join);
      this.#checkBehindLookups(join);
    }
    const predicates: BoundPredicate[] = bindWhere(where, joinNodes, bindings);
    const groupBy = groupNodes.map((node) => bindings.expression(node, GROUP_BY));
    const window = this.#window(groupBy);
    const having = havingNode && this.#having(havingNode);
    const orderBy = orderNodes.map(({ expression, isDescending }) => ({
      expression: bindings.expression(expression, SELECT),
      isDescending
    }));
    const slots = bindings.slots();
    const { aggregates, analytics } = bindings;
    const isGrouped = aggregates.length > 0 || groupBy.length > 0;
    const sources = this.#sources.bound();
    return {
      sources,
      joins,
      where: predicates,
      window,
      groupBy,
      having,
      orderBy,
      limit,
      fields,
      aggregates,
      analytics,
      slots,
      isGrouped,
      isDelayed: hasCall(this.#select, 'delay')
    };
  }

  /** @throws SqlError for sources that cannot be combined */
  #checkSources(): void {
    const { joins, window, from } = this.#select;
    const roles = Array.from({ length: this.#sources.count }, (_, position) => this.#sources.role(position));
    const streams = roles.filter((role) => role === 'stream').length;
    if (roles[0] === 'lookup')
      throw this.#error(`the lookup table ${from.name} can only be joined`, from, 'select from a stream, and join it');
    if (streams > 1 && window === undefined)
      throw this.#error(
        'need to run stream join in windows',
        joins[0],
        'add a window: GROUP BY TUMBLINGWINDOW(ss, 10)'
      );
    if (streams === 0 && window !== undefined) throw this.#error('cannot run window for TABLE sources', window);
  }

  /** @throws SqlError for a lookup table that cannot be joined in this way */
  #checkLookup({ source, kind, on }: BoundJoin): void {
    if (this.#sources.role(source) !== 'lookup') return;
    const node = this.#sources.node(source);
    if (kind !== 'inner' && kind !== 'left')
      throw this.#error(`the lookup table ${node.name} can only have an INNER or a LEFT JOIN`, node);
    if (!on.some(({ equality }) => equality?.column !== undefined))
      throw this.#error(
        `ON has no equality for a column of the lookup table ${node.name}`,
        node,
        this.#keyHint(source)
      );
  }

  /** Rows of lookup tables are found after all other joins. @throws SqlError for a join that needs them earlier */
  #checkBehindLookups({ kind, source, on }: BoundJoin): void {
    if (this.#sources.role(source) === 'lookup') return;
    for (let lookup = 1; lookup < source; lookup++) {
      if (this.#sources.role(lookup) !== 'lookup') continue;
      const { name } = this.#sources.node(lookup);
      const fault = on.some(({ uses }) => uses.certain.includes(lookup))
        ? `ON of ${this.#sources.label(source)} reads the lookup table ${name}, which is joined after all streams and scanned tables`
        : this.#select.joins[lookup - 1].kind === 'inner' && (kind === 'right' || kind === 'full')
          ? `the INNER JOIN of the lookup table ${name} cannot precede a ${kind.toUpperCase()} JOIN`
          : undefined;
      if (fault !== undefined)
        throw this.#error(fault, this.#sources.node(source), 'join the lookup table last, or in a separate rule');
    }
  }

  #keyHint(source: number): string {
    return `rows are looked up by this column: ON a = ${this.#sources.label(source)}.id`;
  }

  #fields(): BoundField[] {
    const { fields } = this.#select;
    const names = fieldNames(fields, this.#sources);
    const bound = new Map<number, BoundField>();
    for (const group of this.#order()) {
      const visible = this.#bindings.aliasCount;
      for (const index of group) {
        const field = fields[index];
        bound.set(index, field.type === 'star' ? this.#star(field) : this.#selected(field, names[index], visible));
      }
    }
    const rows = fields.filter(
      (field) => field.type === 'selected' && this.#expanding(field.expression)?.kind === 'rows'
    );
    if (rows.length > 1)
      throw this.#error(
        'only one function of SELECT can return several rows',
        rows[1],
        'use only one unnest() in a statement'
      );
    return fields.flatMap((field, index) =>
      field.type === 'star' || field.isInvisible !== true ? (bound.get(index) ?? []) : []
    );
  }

  /** The order in which fields are bound, so that each can use the aliases of others. */
  #order(): readonly (readonly number[])[] {
    const { fields } = this.#select;
    const aliases = new Map<string, number>();
    for (const [index, field] of fields.entries())
      if (field.type === 'selected' && field.alias !== undefined && this.#expanding(field.expression) === undefined)
        aliases.set(field.alias.name, index);
    return bindingOrder(fields, aliases, { sources: this.#sources, text: this.#text });
  }

  #star(star: Star): BoundField {
    const { stream, except = [], replace = [] } = star;
    const source = stream === undefined ? undefined : this.#sources.position(stream);
    if (stream !== undefined && source === undefined) throw this.#error(`unknown source ${stream}`, star);
    this.#sources.all(source);
    const names = [...except, ...replace.flatMap(({ alias }) => (alias === undefined ? [] : [alias.name]))];
    for (const name of names) if (this.#sources.isUnknown(name, source)) throw this.#sources.unknownField(name, star);
    const replaced = replace.map((field) => {
      if (field.alias === undefined) throw this.#error('REPLACE needs the name of a column: a + 1 AS a', field);
      return { name: field.alias.name, expression: this.#bindings.expression(field.expression, SELECT, 0) };
    });
    return { type: 'star', source: this.#sources.count === 1 ? undefined : source, except, replace: replaced };
  }

  /** @param visible number of aliases that it can use */
  #selected({ expression, alias }: Selected, name: string, visible: number): BoundField {
    const expanding = this.#expanding(expression);
    if (expanding !== undefined) return this.#expand(expression as Call, expanding, name);
    const bound =
      alias === undefined
        ? this.#bindings.expression(expression, SELECT)
        : this.#bindings.define(alias, expression, SELECT, visible);
    return { type: 'column', name, expression: bound };
  }

  #expanding(node: Expression): ExpandingFunction | undefined {
    const row = node.type === 'call' ? this.#functions.get(node.name.toLowerCase()) : undefined;
    return row?.kind === 'rows' || row?.kind === 'columns' ? row : undefined;
  }

  #expand(call: Call, row: ExpandingFunction, name: string): BoundField {
    const { slot, args } = this.#bindings.expanding(call, row, SELECT);
    return { type: 'expanding', name, function: row, names: argumentNames(call, this.#sources), args, slot };
  }

  /** @param groupBy the keys of GROUP BY */
  #window(groupBy: readonly BoundExpression[]): BoundWindow | undefined {
    const node = this.#select.window;
    if (node === undefined) return undefined;
    const clause = this.#sources.count > 1 ? WINDOW_OF_JOIN : WINDOW;
    const expression = (each: Expression) => this.#bindings.expression(each, clause);
    return {
      node,
      filter: node.filter && { ...expression(node.filter), reads: this.#bindings.reads(node.filter, clause) },
      when: node.when && expression(node.when),
      conditions: node.conditions.map(expression),
      partitionBy: node.partitionBy.length > 0 ? node.partitionBy.map(expression) : this.#partitions(node, groupBy)
    };
  }

  /**
   * The keys by which a state window separates its states: those that can be evaluated for a row of the only stream.
   */
  #partitions({ kind }: Window, groupBy: readonly BoundExpression[]): readonly BoundExpression[] {
    const positions = Array.from({ length: this.#sources.count }, (_, position) => position);
    const streams = positions.filter((position) => this.#sources.role(position) === 'stream');
    if (kind !== 'state' || streams.length !== 1) return [];
    return groupBy.filter(({ uses }) => !uses.frame && uses.sources.every((source) => source === streams[0]));
  }

  #having(node: Expression): BoundExpression {
    const bound = this.#bindings.expression(node, SELECT);
    this.#checkHaving(node);
    return { ...bound, reads: this.#bindings.reads(node, SELECT) };
  }

  /** Functions of values need an aggregate call among their arguments. @throws SqlError */
  #checkHaving(node: Expression): void {
    if (node.type === 'call') {
      const isPlain = this.#functions.get(node.name.toLowerCase())?.kind === 'scalar';
      if (isPlain && !this.#bindings.expression(node, SELECT).uses.aggregates)
        throw this.#error('Not allowed to call none-aggregate functions in HAVING clause.', node);
      return;
    }
    for (const child of childrenOf(node)) this.#checkHaving(child);
  }

  #error(fault: string, { start }: { readonly start: number }, hint?: string): SqlError {
    return new SqlError(fault, this.#text, start, hint);
  }
}
