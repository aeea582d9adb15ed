// A deployment whose sandboxes may reach listed domains: by the proxy alone, and those of tasks that may alone.
import { describe, expect, it } from "vitest";
import { lintTemplate } from "../../infra/lint/template.ts";
import { SolutionsChecks } from "../../infra/nag.ts";
import { deployedTemplates, environmentOf, flatten } from "./deployed-templates.ts";
import { synthesize } from "./synthesized.ts";

const domains = ["pypi.org", ".pythonhosted.org"];
const { app, config, templates } = synthesize({ network: { egress: { profile: "proxy", domains } } });
const propertiesOf = (stack: string, type: string) =>
  Object.values(templates[stack].Resources)
    .filter(resource => resource.Type === type)
    .map(({ Properties }) => Properties);

describe("the proxy profile", () => {
  it("keeps our rules and cdk-nag's", () => {
    for (const template of Object.values(templates))
      expect(lintTemplate(template, `${config.name}-sandbox`)).toEqual([]);
    const { violations } = new SolutionsChecks().validate({ appConstruct: app, templatePaths: [] } as never);
    expect(violations).toEqual([]);
  });

  it("leads from sandboxes to the proxy and nowhere else; from others nobody gets there", () => {
    const named = (id: unknown, name: string): boolean => flatten(id).includes(name);
    const outOfNetworked = propertiesOf("network", "AWS::EC2::SecurityGroupEgress").filter(({ GroupId }) =>
      named(GroupId, "NetworkedGroup"),
    );
    expect(outOfNetworked).toEqual([
      expect.objectContaining({ FromPort: 3128, ToPort: 3128, IpProtocol: "tcp" }),
    ]);
    expect(flatten(outOfNetworked[0].DestinationSecurityGroupId)).toContain("ProxyGroup");
    const intoProxy = propertiesOf("network", "AWS::EC2::SecurityGroupIngress").filter(({ GroupId }) =>
      named(GroupId, "ProxyGroup"),
    );
    expect(intoProxy.map(({ SourceSecurityGroupId }) => flatten(SourceSecurityGroupId))).toEqual([
      expect.stringContaining("NetworkedGroup"),
    ]);
    // Sandboxes' subnets still route nowhere.
    expect(propertiesOf("network", "AWS::EC2::NatGateway")).toEqual([]);
  });

  it("tells the proxy what is allowed, and lets DNS answer for these names", () => {
    const [{ ContainerDefinitions: containers }] = propertiesOf("egress", "AWS::ECS::TaskDefinition");
    expect(containers[0].Environment).toEqual([
      { Name: "T1_ALLOWED_DOMAINS", Value: "pypi.org,.pythonhosted.org" },
    ]);
    const [known] = propertiesOf("network", "AWS::Route53Resolver::FirewallDomainList").map(list =>
      list.Domains.map(flatten),
    );
    expect(known).toEqual(expect.arrayContaining(["pypi.org", "*.pythonhosted.org"]));
  });

  it("is told to drivers, who give tasks that may use the network its group and its address", async () => {
    expect(environmentOf(templates, "sandboxes", "driver")).toMatchObject({
      T1_PROXY_URL: "http://proxy.t1.internal:3128",
      T1_NETWORKED_GROUP: expect.stringContaining("NetworkedGroup"),
    });
    expect(environmentOf(await deployedTemplates(), "sandboxes", "driver")).not.toHaveProperty(
      "T1_PROXY_URL",
    );
  });

  it("is not there unless it is asked for", async () => {
    expect(await deployedTemplates()).not.toHaveProperty("egress");
  });
});
