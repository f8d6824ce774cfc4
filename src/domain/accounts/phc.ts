/** The cost parameters of a scrypt hash. */
export interface ScryptCost {
  readonly log2Cost: number
  readonly blockSize: number
  readonly parallelism: number
}

/** A stored password hash, parsed. */
export interface ScryptHash extends ScryptCost {
  readonly salt: Buffer
  readonly digest: Buffer
}

const PHC = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}

/** `$scrypt$ln=17,r=8,p=1$salt$digest`, both in unpadded base64 (the PHC string format). */
export function formatPhc(hash: ScryptHash): string {
  const { log2Cost, blockSize, parallelism, salt, digest } = hash
  return `$scrypt$ln=${log2Cost},r=${blockSize},p=${parallelism}$${unpadded(salt)}$${unpadded(digest)}`
}

/** Parses a stored hash; undefined if it is not one of ours. */
export function parsePhc(text: string): ScryptHash | undefined {
  const [, log2Cost, blockSize, parallelism, salt, digest] = PHC.exec(text) ?? []
  if (salt === undefined || digest === undefined) return undefined
  return {
    log2Cost: Number(log2Cost),
    blockSize: Number(blockSize),
    parallelism: Number(parallelism),
    salt: Buffer.from(salt, 'base64'),
    digest: Buffer.from(digest, 'base64'),
  }
}
