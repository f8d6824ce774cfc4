import type { Config } from '../../config/schema.ts'
import type { Requester } from '../../domain/accounts/requester.ts'
import type { Operator } from '../../domain/admin/operator.ts'
import { WEB_SESSION_MS } from '../../domain/limits/oauth.ts'
import type { Services } from '../../domain/services.ts'
import { cookieName, isProofFor, proofFor, setCookie } from '../account/visitor.ts'

/** An administrator who has the console open. */
export interface ConsoleOperator extends Operator {
  readonly requester: Requester
  readonly secret: string
  readonly isRecent: boolean
}

type Cookie = (name: string) => string | undefined
type Addresses = Pick<Config, 'public_base_url' | 'listen'>
type Parts = Pick<Services, 'config' | 'oauth' | 'admin'>

const PREFIX = 'hearthcs_'
const USE = 'console'

/**
 * What the console's page sends with each request, beside the cookie that only the browser knows: neither of them is of use alone. Another
 * site can make the browser send the cookie at most, and what runs in the page cannot carry the session away.
 */
export const consoleToken = (secret: string): string => PREFIX + proofFor({ secret }, USE)

export const isConsoleToken = (token: string): boolean => token.startsWith(PREFIX)

export const consoleCookie = (config: Addresses, secret: string): string =>
  setCookie(config, 'console', secret, WEB_SESSION_MS, 'Strict')

export const noConsoleCookie = (config: Addresses): string => setCookie(config, 'console', '', 0, 'Strict')

/** The administrator whose console a request comes from, by the cookie alone: good for pages, which change nothing. */
export async function consoleOperator(services: Parts, cookie: Cookie): Promise<ConsoleOperator | undefined> {
  const secret = cookie(cookieName(services.config, 'console'))
  const session = await services.oauth.webSessions.find(secret, 'console')
  if (secret === undefined || session === undefined) return undefined
  const { userId, userNid, isRecent } = session
  const requester = { userId, userNid, deviceId: '', tokenNid: 0, isGuest: false }
  return (await services.admin.operators.isAdmin(requester)) ? { name: userId, requester, secret, isRecent } : undefined
}

/** The administrator whose console sends a request to the admin API: with the cookie, and with the token that belongs to it. */
export async function consoleCaller(services: Parts, token: string, cookie: Cookie): Promise<Operator | undefined> {
  const secret = cookie(cookieName(services.config, 'console'))
  if (secret === undefined || !isProofFor({ secret }, USE, token.slice(PREFIX.length))) return undefined
  return consoleOperator(services, cookie)
}
