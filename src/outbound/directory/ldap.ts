import { readFile } from 'node:fs/promises'
import { rootCertificates } from 'node:tls'
import type { Client, Entry } from 'ldapts'
import type { Config } from '../../config/schema.ts'
import { type Directory, DirectoryFailure, type DirectoryPerson } from './directory.ts'

const TIMEOUT_MS = 10_000
/** Questions at a time. One more fails at once. */
const MAX_AT_ONCE = 16
/** A name in a directory is no longer than one here. */
const MAX_NAME_CHARS = 255

type Ldapts = typeof import('ldapts')

/** @returns undefined where no directory is configured */
export function createLdapDirectory({ ldap }: Pick<Config, 'ldap'>): Directory | undefined {
  const { url, base_dn, user_attribute, bind_dn, bind_password = '', filter, name_attribute, mail_attribute } = ldap
  if (url === undefined) return undefined
  let underWay = 0

  async function open({ Client }: Ldapts) {
    const ca = ldap.ca_file === undefined ? undefined : [...rootCertificates, await readFile(ldap.ca_file, 'utf8')]
    const tlsOptions = { ...(ca && { ca }), minVersion: 'TLSv1.2' as const }
    const isSecure = url!.startsWith('ldaps:')
    const client = new Client({
      url: url!,
      timeout: TIMEOUT_MS,
      connectTimeout: TIMEOUT_MS,
      ...(isSecure && { tlsOptions }),
    })
    return { client, tlsOptions }
  }

  const attributes = [user_attribute, name_attribute, mail_attribute]

  /** Looks a person up, and then signs in as them. */
  async function searched(library: Ldapts, client: Client, name: string, password: string): Promise<Entry | undefined> {
    await client.bind(bind_dn!, bind_password).catch((error: Error) => {
      throw new DirectoryFailure(`ldap.bind_dn cannot sign in: ${error.message}`)
    })
    const byName = new library.EqualityFilter({ attribute: user_attribute, value: name })
    const { searchEntries: found } = await client.search(base_dn, {
      scope: 'sub',
      filter: filter === undefined ? byName : `(&${byName.toString()}${filter})`,
      attributes,
      sizeLimit: 2,
    })
    // A name that two people have proves nobody.
    const [entry] = found
    if (entry === undefined || found.length > 1) return undefined
    await client.bind(entry.dn, password)
    return entry
  }

  /** Signs in as the person at the place where they must be. */
  async function direct(library: Ldapts, client: Client, name: string, password: string): Promise<Entry | undefined> {
    const rdn = new library.DN().addPairRDN(user_attribute, name).toString()
    const dn = base_dn === '' ? rdn : `${rdn},${base_dn}`
    await client.bind(dn, password)
    return (await client.search(dn, { scope: 'base', attributes })).searchEntries[0]
  }

  function personOf(entry: Entry): DirectoryPerson | undefined {
    const name = textIn(entry, user_attribute)
    if (name === undefined) return undefined
    return { name, displayName: textIn(entry, name_attribute), email: textIn(entry, mail_attribute) }
  }

  async function ask(name: string, password: string): Promise<DirectoryPerson | undefined> {
    const library = await import('ldapts')
    const { client, tlsOptions } = await open(library)
    try {
      if (ldap.start_tls) await inTime(client.startTLS({ ...tlsOptions, host: new URL(url!).hostname }))
      const find = bind_dn === undefined ? direct : searched
      const entry = await find(library, client, name, password)
      return entry && personOf(entry)
    } catch (error) {
      const { InvalidCredentialsError, NoSuchObjectError, InvalidDNSyntaxError } = library
      const isNobody = [InvalidCredentialsError, NoSuchObjectError, InvalidDNSyntaxError].some(
        (kind) => error instanceof kind,
      )
      if (isNobody) return undefined
      throw error
    } finally {
      await client.unbind().catch(() => {})
    }
  }

  return {
    async verify(name, password) {
      // A directory takes an empty password for no sign-in at all, and says that it is fine (RFC 4513, 5.1.2).
      if (password === '' || name === '' || name.length > MAX_NAME_CHARS || name.includes('\0')) return undefined
      if (underWay >= MAX_AT_ONCE) throw new DirectoryFailure('too many questions at once')
      underWay += 1
      try {
        return await ask(name, password)
      } catch (error) {
        throw new DirectoryFailure((error as Error).message)
      } finally {
        underWay -= 1
      }
    },
  }
}

/** The library has no limit for the handshake that follows StartTLS. */
async function inTime(startTls: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('no TLS in time after StartTLS')), TIMEOUT_MS)
  })
  await Promise.race([startTls, late]).finally(() => clearTimeout(timer))
}

function textIn(entry: Entry, attribute: string): string | undefined {
  const key = Object.keys(entry).find((name) => name.toLowerCase() === attribute.toLowerCase())
  const [value] = [key === undefined ? [] : entry[key]!].flat()
  return typeof value === 'string' && value !== '' ? value : undefined
}
