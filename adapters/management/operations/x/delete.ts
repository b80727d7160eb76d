import { Fault, Router } from '../../../rest/index.ts';
import { any, checkQuery, objectOf, optional, parseQuery, text } from '../../../rest/kit/index.ts';
import { checkNames } from '../../input.ts';
import { type Operation, operation } from '../../operation.ts';

/**
 * Deletes objects that the path of a request cannot name: servers refuse long URLs, and HTTP clients remove the
 * segments `.` and `..`.
 */
export const DELETE: readonly Operation[] = [
  operation({
    name: 'delete_by_path',
    method: 'POST',
    path: '/x/delete',
    grantsAccess: true, // because it could delete applications and users
    descr: 'Execute a DELETE for a path that is too long for a URL, or that has "." or ".." as a name',
    body: objectOf({
      path: text('The path behind the prefix, with percent escapes: "/auth_username/a%2Fb"')
    }),
    data: optional(any('The answer of the operation for this path')),
    example: { body: { path: '/auth_username/sensors' } },
    audited: ({ body: { path } }) => ({ path }),
    run: async (context, { body: { path } }) => {
      const mark = path.indexOf('?');
      const [place, text] = mark < 0 ? [path, ''] : [path.slice(0, mark), path.slice(mark + 1)];
      const found = new Router(context.operations).find('DELETE', place);
      if (found === undefined)
        throw new Fault('unknownRecord', `there is no operation DELETE ${place.slice(0, 200)}`, 'not_found');
      const { row, params } = found;
      checkNames(row, text);
      const input = { params, query: checkQuery(row.query, parseQuery(text)), body: undefined };
      try {
        return await row.run(context, input);
      } catch (error) {
        throw row.faultOf?.(error, input) ?? error;
      }
    }
  })
];
