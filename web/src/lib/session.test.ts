import { describe, expect, it } from "vitest";
import { serverAt } from "./session";

describe("serverAt", () => {
  it("uses the gRPC port on the console's host, or the console's own port behind a proxy", () => {
    expect(serverAt({ hostname: "127.0.0.1", port: "8470", protocol: "http:" }, 8471)).toBe("127.0.0.1:8471");
    expect(serverAt({ hostname: "tune.example.org", port: "", protocol: "https:" }, 0)).toBe("tune.example.org:443");
    expect(serverAt({ hostname: "tune.example.org", port: "8443", protocol: "https:" }, 0)).toBe("tune.example.org:8443");
  });
});
