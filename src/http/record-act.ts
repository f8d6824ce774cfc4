import type { Audit } from '../domain/admin/audit.ts'
import type { Endpoint, Reply } from './endpoint.ts'
import type { EndpointRequest } from './request.ts'

/** The recorded part of a registration token. */
const TOKEN_CHARS = 4

/** Runs the handler of an admin endpoint and records the act, unless the endpoint only reads and shows no private data. */
export function recordAct(
  audit: Audit,
  { method, path, options }: Endpoint,
  { requester, params, body }: EndpointRequest,
  handle: () => Promise<Reply> | Reply,
): Promise<Reply> | Reply {
  if (requester === undefined || !('name' in requester) || (method === 'GET' && !options.recorded)) return handle()
  return audit.record({ actor: requester.name, act: `${method} ${path}`, target: targetOf(params, body) }, handle)
}

function targetOf(params: unknown, body: unknown): string {
  const { token, txnId: _, ...others } = params as Readonly<Record<string, string>>
  const { user_id: user, crowd } = (body ?? {}) as { readonly user_id?: unknown; readonly crowd?: unknown }
  const shown = token === undefined ? [] : [`${token.slice(0, TOKEN_CHARS)}...`]
  const whom = [typeof user === 'string' ? user : '', crowd === undefined ? '' : JSON.stringify(crowd)].filter(Boolean)
  return [...Object.values(others), ...shown, ...whom].join(' ')
}
