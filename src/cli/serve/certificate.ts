import { createPrivateKey, X509Certificate } from 'node:crypto'
import { type FSWatcher, watch } from 'node:fs'
import { readFile, realpath } from 'node:fs/promises'
import { dirname } from 'node:path'
import { createSecureContext } from 'node:tls'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { TlsCertificate } from '../../http/https.ts'

/** The HTTPS certificate in its files. */
export interface CertificateFiles {
  current(): LoadedCertificate
  /** Sets the function that is called with each new certificate. */
  onChange(use: (certificate: LoadedCertificate) => void): void
  /** Reads the files again. If they cannot be used, it logs the reason, keeps the old certificate and gives false. */
  reload(): Promise<boolean>
  close(): void
}

export interface LoadedCertificate extends TlsCertificate {
  readonly validUntil: number
  readonly leaf: X509Certificate
}

/** This long before a certificate expires, the log warns every day. */
export const EXPIRY_WARNING_MS = 14 * 86_400_000
const DAY_MS = 86_400_000
const LOOK_EVERY_MS = 3_600_000
/** Waits after a change, because the two files are not replaced at the same moment. */
const SETTLING_MS = 500
const SECOND_LOOK_MS = 3_000

/** @throws Error that names the option, the file and the remedy */
export async function loadCertificate({
  certificate_file: certFile,
  key_file: keyFile,
}: Config['https']): Promise<LoadedCertificate> {
  const cert = await readPem('https.certificate_file', certFile!, 'the chain that came with your certificate')
  const key = await readPem('https.key_file', keyFile!, 'the private key of your certificate')
  const leaf = asked(() => new X509Certificate(cert), `https.certificate_file: ${certFile} holds no certificate (PEM)`)
  const secret = asked(
    () => createPrivateKey(key),
    `https.key_file: ${keyFile} holds no private key (PEM, not encrypted)`,
  )
  if (!leaf.checkPrivateKey(secret)) {
    throw new Error(
      `https.key_file: ${keyFile} is not the key of the certificate in ${certFile}; name the two that belong together`,
    )
  }
  asked(() => createSecureContext({ cert, key }), `https.certificate_file: ${certFile} cannot be used`)
  return { cert, key, leaf, validUntil: Date.parse(leaf.validTo) }
}

async function readPem(option: string, file: string, what: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') throw new Error(`${option}: ${file} is not there; name the file with ${what}`)
    const remedy = `let the user that Hearth runs as read it (chgrp, chmod 640, and chmod 750 for its directory)`
    if (code === 'EACCES') throw new Error(`${option}: ${file} may not be read; ${remedy}`)
    throw new Error(`${option}: ${file} cannot be read: ${message}`)
  }
}

function asked<T>(attempt: () => T, complaint: string): T {
  try {
    return attempt()
  } catch (error) {
    throw new Error(`${complaint}: ${(error as Error).message}`)
  }
}

/** Reads the files and watches them. Undefined if HTTPS is not configured. @throws as {@link loadCertificate} */
export async function openCertificate(
  options: Config['https'],
  { log, now = Date.now }: { readonly log: Logger; readonly now?: () => number },
): Promise<CertificateFiles | undefined> {
  if (options.certificate_file === undefined || options.key_file === undefined) return undefined
  let current = await loadCertificate(options)
  let use: (certificate: LoadedCertificate) => void = () => {}
  let warnedAt = 0
  let complaint = ''

  function warnOfEnd(): void {
    const days = Math.floor((current.validUntil - now()) / DAY_MS)
    if (current.validUntil - now() > EXPIRY_WARNING_MS || now() - warnedAt < DAY_MS) return
    warnedAt = now()
    const facts = { file: options.certificate_file, valid_until: new Date(current.validUntil).toISOString() }
    const text = days < 0 ? 'the certificate has run out' : `the certificate runs out in ${days} days`
    log.warn(facts, `${text}: renew it, and see why that did not happen by itself`)
  }

  async function look(): Promise<Error | undefined> {
    try {
      const found = await loadCertificate(options)
      complaint = ''
      if (found.cert === current.cert && found.key === current.key) return undefined
      current = found
      warnedAt = 0
      use(found)
      log.info({ valid_until: new Date(found.validUntil).toISOString() }, 'a new certificate is in use')
      return undefined
    } catch (error) {
      return error as Error
    } finally {
      warnOfEnd()
    }
  }

  /** Logs a problem, but not the same one twice in a row. */
  function complain({ message }: Error): void {
    if (message === complaint) return
    complaint = message
    log.error({ reason: message }, 'the new certificate cannot be used; the one before stays in use')
  }

  warnOfEnd()
  const watching = await watchDirectories([options.certificate_file, options.key_file], async (isSecondLook) => {
    const failure = await look()
    if (failure !== undefined && isSecondLook) complain(failure)
    return failure === undefined
  })
  return {
    current: () => current,
    onChange(next) {
      use = next
    },
    async reload() {
      complaint = ''
      const failure = await look()
      if (failure !== undefined) complain(failure)
      return failure === undefined
    },
    close: watching.close,
  }
}

/** Watches the directories of the files and, for links, of their targets. A change that the watch misses is noticed within the hour. */
async function watchDirectories(
  files: readonly string[],
  look: (isSecondLook: boolean) => Promise<boolean>,
): Promise<{ close(): void }> {
  const places = await Promise.all(files.flatMap((file) => [file, realpath(file).catch(() => file)]))
  let timer: NodeJS.Timeout | undefined
  let closed = false

  function later(ms: number, isSecondLook: boolean): void {
    if (closed) return
    clearTimeout(timer)
    timer = setTimeout(() => {
      void look(isSecondLook).then((isGood) => isGood || isSecondLook || later(SECOND_LOOK_MS, true))
    }, ms).unref()
  }

  const watchers = [...new Set(places.map((place) => dirname(place)))].flatMap((directory): FSWatcher[] => {
    try {
      const watcher = watch(directory, { persistent: false }, () => later(SETTLING_MS, false))
      return [watcher.on('error', () => watcher.close())]
    } catch {
      return []
    }
  })
  const hourly = setInterval(() => later(0, true), LOOK_EVERY_MS).unref()
  return {
    close() {
      closed = true
      clearTimeout(timer)
      clearInterval(hourly)
      for (const watcher of watchers) watcher.close()
    },
  }
}
