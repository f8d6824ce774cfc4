import { isIP } from 'node:net'
import { RefusedError } from './failures.ts'

/** Where to connect for a URL. */
export interface Place {
  /** As in a URL: IPv6 in brackets. */
  readonly host: string
  readonly port: number
}

/** @param via where to connect instead of the URL's host and port */
export function placeOf(url: URL, via: { readonly host: string; readonly port: number } | undefined): Place {
  if (via === undefined) return { host: url.hostname, port: Number(url.port || (url.protocol === 'https:' ? 443 : 80)) }
  // By way of a URL, so that every spelling of an address becomes the usual one.
  return { host: addressOf(`https://${isIP(via.host) === 6 ? `[${via.host}]` : via.host}`).hostname, port: via.port }
}

/** @throws RefusedError what is no URL, or none that this server calls */
export function addressOf(text: string, base?: URL): URL {
  if (!URL.canParse(text, base?.href)) throw new RefusedError(`"${text.slice(0, 200)}" is no address`)
  const url = new URL(text, base)
  if (!/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw new RefusedError(`"${text.slice(0, 200)}" is no address that is called`)
  }
  return url
}

/** An address as it is in itself: of IPv6 in a URL, without the brackets. */
export const bare = (host: string): string => host.replace(/^\[|\]$/g, '')
export const isLiteral = (host: string): boolean => isIP(bare(host)) !== 0
