/**
 * A shortened email address that strangers may see (identity service API, "Invitation storage"): `f...@b...` with one letter shown.
 * It never shows more than half of the localpart or of the domain.
 */
export function redactEmail(address: string, shown: number): string {
  return address
    .split('@')
    .map((half) => {
      const letters = [...half]
      return `${letters.slice(0, Math.min(shown, Math.floor(letters.length / 2))).join('')}...`
    })
    .join('@')
}
