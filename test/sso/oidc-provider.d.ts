declare module 'oidc-provider' {
  import type { RequestListener } from 'node:http'

  /** What these tests use of it. */
  export class Provider {
    constructor(issuer: string, configuration: object)
    callback(): RequestListener
    readonly Grant: new (
      parameters: object,
    ) => { addOIDCScope(scope: string): void; save(): Promise<string> }
  }
}
