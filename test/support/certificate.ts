import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Certificate {
  readonly key: string
  readonly cert: string
}

export interface Authority {
  readonly cert: string
  /** Where its certificate is, for `ca_file`. Gone after `remove()`. */
  readonly file: string
  /** A certificate for these names and addresses, for so many days; less than none: one that has run out. */
  issue(hosts: readonly string[], days?: number): Certificate
  remove(): void
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
const DAY_MS = 86_400_000

/** A certificate of its own authority for one host name, made with openssl. */
export function selfSigned(host: string): Certificate {
  return inDirectory((directory) => {
    const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')]
    openssl(['req', '-x509', ...NEW_KEY, '-days', '2', '-subj', `/CN=${host}`, '-addext', namesOf([host])], key, cert)
    return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
  })
}

/** An authority that no system trusts. */
export function createAuthority(): Authority {
  const directory = mkdtempSync(join(tmpdir(), 'hearth-ca-'))
  const [caKey, file] = [join(directory, 'ca-key.pem'), join(directory, 'ca.pem')]
  openssl(['req', '-x509', ...NEW_KEY, '-days', '30', '-subj', '/CN=An authority for tests'], caKey, file)
  return {
    cert: readFileSync(file, 'utf8'),
    file,
    issue: (hosts, days = 10) =>
      inDirectory((at) => {
        const [key, request, cert, extensions] = ['key', 'request', 'cert', 'ext'].map((name) => join(at, name))
        openssl(['req', ...NEW_KEY, '-subj', '/CN=a server of a test'], key!, request!)
        writeFileSync(extensions!, namesOf(hosts))
        const from = new Date(Date.now() - 20 * DAY_MS)
        const to = new Date(Date.now() + days * DAY_MS)
        sign({ caKey, file, request: request!, cert: cert!, extensions: extensions!, from, to })
        return { key: readFileSync(key!, 'utf8'), cert: readFileSync(cert!, 'utf8') }
      }),
    remove: () => rmSync(directory, { recursive: true }),
  }
}

function sign(what: {
  readonly caKey: string
  readonly file: string
  readonly request: string
  readonly cert: string
  readonly extensions: string
  readonly from: Date
  readonly to: Date
}): void {
  const at = mkdtempSync(join(tmpdir(), 'hearth-ca-db-'))
  try {
    const config = join(at, 'config')
    writeFileSync(join(at, 'index'), '')
    writeFileSync(
      config,
      `[ca]\ndefault_ca=it\n[it]\ndatabase=${at}/index\nnew_certs_dir=${at}\ndefault_md=sha256\npolicy=any\nrand_serial=yes\n[any]\ncommonName=optional\n`,
    )
    const moment = (date: Date): string => `${date.toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`
    execFileSync(
      'openssl',
      ['ca', '-batch', '-notext', '-config', config, '-cert', what.file, '-keyfile', what.caKey]
        .concat(['-in', what.request, '-out', what.cert, '-extfile', what.extensions])
        .concat(['-startdate', moment(what.from), '-enddate', moment(what.to)]),
      { stdio: 'ignore' },
    )
  } finally {
    rmSync(at, { recursive: true })
  }
}

function namesOf(hosts: readonly string[]): string {
  return `subjectAltName=${hosts.map((host) => `${isIP(host) === 0 ? 'DNS' : 'IP'}:${host}`).join(',')}`
}

function openssl(words: readonly string[], key: string, out: string): void {
  execFileSync('openssl', [...words, '-keyout', key, '-out', out], { stdio: 'ignore' })
}

function inDirectory<T>(work: (directory: string) => T): T {
  const directory = mkdtempSync(join(tmpdir(), 'hearth-cert-'))
  try {
    return work(directory)
  } finally {
    rmSync(directory, { recursive: true })
  }
}
