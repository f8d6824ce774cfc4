/** A charset is declared within the first kilobyte (HTML standard, 4.2.5.5). */
const SNIFFED_BYTES = 1_024
const DECLARED = /<meta[^>]{0,200}charset\s*=\s*["']?([\w-]{1,40})/i

/** A page's bytes as text, in the charset of its header or of its own declaration. */
export function pageText(bytes: Buffer, contentType: string): string {
  const charset =
    /;\s*charset\s*=\s*"?([\w-]{1,40})/i.exec(contentType)?.[1] ??
    DECLARED.exec(bytes.toString('latin1', 0, SNIFFED_BYTES))?.[1] ??
    'utf-8'
  try {
    return new TextDecoder(charset).decode(bytes)
  } catch {
    return bytes.toString('utf8')
  }
}
